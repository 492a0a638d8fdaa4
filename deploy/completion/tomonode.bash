# SPDX-License-Identifier: Apache-2.0
# Completion of tomonode for bash: the program itself knows its commands, options and names (`tomonode help --complete WORD...`).
_tomonode() {
    local word=${COMP_WORDS[COMP_CWORD]} line ending
    COMPREPLY=()
    while IFS= read -r line; do
        case $line in
        :folders)
            compopt -o filenames 2>/dev/null
            mapfile -t -O "${#COMPREPLY[@]}" COMPREPLY < <(compgen -d -- "$word")
            ;;
        :files)
            compopt -o filenames 2>/dev/null
            mapfile -t -O "${#COMPREPLY[@]}" COMPREPLY < <(compgen -f -- "$word")
            ;;
        :files*)
            compopt -o filenames 2>/dev/null
            mapfile -t -O "${#COMPREPLY[@]}" COMPREPLY < <(compgen -d -- "$word")
            for ending in ${line#:files }; do
                mapfile -t -O "${#COMPREPLY[@]}" COMPREPLY < <(compgen -f -X "!*.$ending" -- "$word")
            done
            ;;
        *=)
            compopt -o nospace 2>/dev/null
            COMPREPLY+=("$line")
            ;;
        *) COMPREPLY+=("$line") ;;
        esac
    done < <("${COMP_WORDS[0]}" help --complete "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
}
complete -F _tomonode tomonode
