#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The command line: help of every command, exit codes, check on good and bad files, JSON, the reference in docs/configuration.md.
set -u
: "${TOMONODE:?path of the program}" "${TOMONODE_SOURCE:?root of the source}"
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
export TOMONODE_SPOOL="$work/spool"
failed=0

fail() {
	echo "FAILED: $*" >&2
	failed=1
}

# expect CODE COMMAND...: run it and check its exit code; stdout and stderr are written to $work/out and $work/err.
expect() {
	want=$1
	shift
	"$@" >"$work/out" 2>"$work/err"
	got=$?
	[ "$got" -eq "$want" ] || fail "code $got instead of $want: $* ($(head -c 300 "$work/err"))"
}
out_has() { grep -qF -- "$1" "$work/out" || fail "stdout lacks '$1': $(head -c 300 "$work/out")"; }
err_has() { grep -qF -- "$1" "$work/err" || fail "stderr lacks '$1': $(head -c 300 "$work/err")"; }
json_is() { # json_is EXPRESSION: true of the document d on stdout
	/usr/bin/python3 -c 'import json,sys; d=json.load(open(sys.argv[1])); sys.exit(0 if eval(sys.argv[2]) else 1)' "$work/out" "$1" ||
		fail "not so: $1: $(head -c 300 "$work/out")"
}

# The program itself
expect 0 "$TOMONODE" --help
out_has "Usage: tomonode COMMAND"
for command in serve check recon simulate export list show retry cancel test-peer devices bench; do
	grep -q "^  $command " "$work/out" || fail "--help lacks $command"
done
grep -qE '^  (index|worker|deliver) ' "$work/out" && fail "--help shows what is not for people"
expect 0 "$TOMONODE" --version
grep -qE '^tomonode [0-9]+\.[0-9]+\.[0-9]+ \(revision [^ ]+, [A-Za-z]+ build\)$' "$work/out" || fail "--version: $(cat "$work/out")"
expect 2 "$TOMONODE"
expect 2 "$TOMONODE" no-such-command
err_has "no command 'no-such-command'"
expect 2 "$TOMONODE" help no-such-command
expect 2 "$TOMONODE" help worker

# Every command: help in both ways, an unknown option
for command in serve check recon simulate export list show retry cancel test-peer devices bench; do
	expect 0 "$TOMONODE" "$command" --help
	out_has "Usage: tomonode $command"
	out_has "Exit codes:"
	cp "$work/out" "$work/help"
	expect 0 "$TOMONODE" help "$command"
	cmp -s "$work/out" "$work/help" || fail "help $command differs from $command --help"
	expect 2 "$TOMONODE" "$command" --no-such-option
	err_has "tomonode $command"
	[ "$(sed 1d "$work/err")" = "More: tomonode $command --help" ] || fail "$command: more than the error: $(cat "$work/err")"
done

# The commands that only the node runs print their help, too, and then end (they crashed: the caller continued without a configuration)
for command in index worker deliver commit status http names report-page; do
	expect 0 "$TOMONODE" "$command" --help
	out_has "Usage: tomonode $command"
	expect 2 "$TOMONODE" "$command" --no-such-option
	err_has "tomonode $command"
done

# Errors in the command line are printed as JSON with --json at any position
expect 2 "$TOMONODE" list --no-such-option --json
json_is 'd["ok"] is False and d["code"] == 2 and "--no-such-option" in d["error"]'
expect 2 "$TOMONODE" simulate dbt --phantom none -o "$work/none" --json
json_is 'd["code"] == 2 and "--phantom none" in d["error"]'

err_has "--phantom KIND: breast"
expect 2 "$TOMONODE" simulate spect -o "$work/none"
err_has "allowed: dbt, pet, parallel"
# The nearest name, and what is allowed for this kind only
refused() { # refused TEXT ARGUMENT...: wrong usage, and stderr has the text
	text=$1
	shift
	expect 2 "$TOMONODE" "$@"
	err_has "$text"
	! grep -qF 'breast_mask' "$work/err" || fail "keys of another kind: $*"
}
refused "command 'recn', did you mean 'recon'?" recn
refused "command 'reconstruct', did you mean 'recon'?" reconstruct
refused "option '--protcol', did you mean '--protocol'?" recon --protcol x
refused "option '--iteration', did you mean '--set iterations=...'?" recon --iteration 3
refused "option '--iteration', did you mean '--set iterations=...'?" redo 1 --iteration 3
refused "option '--g' may be one of --gates, --gate-cycle" recon --g 3
refused "not allowed, did you mean 'breast'?" simulate dbt --phantom brest
refused "'pett' cannot be simulated, did you mean 'pet'?" simulate pett -o "$work/none"
refused "not known, did you mean 'dbt-osem'?" bench --work dbt-osm
refused "\"ossem\", did you mean 'osem'?; allowed: mlem, osem," recon --protocol pet-osem --set algorithm=ossem -o "$work/none" "$work"
refused "did you mean 'iterations'?; allowed: algorithm," recon --protocol pet-osem --set iteratoins=3 -o "$work/none" "$work"
refused "of kind pet; allowed: algorithm, iterations, subsets, matrix," recon --protocol pet-osem --set tile=3 -o "$work/none" "$work"
expect 2 "$TOMONODE" recon --protocol dbt-osem-full --set require_quantitativ=1 -o "$work/none" "$work"
err_has "did you mean 'require_quantitative'?; allowed: algorithm, "
err_has "compression, description"
expect 8 "$TOMONODE" recon --protocol pet-osm -o "$work/none" "$work"
err_has "no protocol 'pet-osm', did you mean 'pet-osem'?; available: dbt-osem, "
expect 8 "$TOMONODE" simulate pet --scanner siemens-mr -o "$work/none"
err_has "did you mean 'siemens-mmr'?"
expect 8 "$TOMONODE" test-peer pac
err_has "did you mean 'pacs'?"
expect 2 "$TOMONODE" no-such-command
! grep -qF 'did you mean' "$work/err" || fail "a suggestion out of nothing: $(head -1 "$work/err")"
printf 'protocols = ( { name = "mine"; kind = "pet"; algorithm = "osme"; } );\n' >"$work/word.conf"
expect 3 "$TOMONODE" check -c "$work/word.conf"
err_has "did you mean 'osem'?"
expect 0 "$TOMONODE" help simulate parallel
out_has "Usage: tomonode simulate parallel"
expect 0 "$TOMONODE" help recon
out_has "Usage: tomonode recon"
expect 8 "$TOMONODE" recon -o "$work/none" "$work/absent.dcm"
expect 8 "$TOMONODE" import "$work/absent.hs" -o "$work/absent"
expect 8 "$TOMONODE" import --petsird "$work/absent.petsird" -o "$work/absent"
expect 8 "$TOMONODE" import "$work/absent.png" -o "$work/absent"
expect 8 "$TOMONODE" report "$work/absent.dcm" -o "$work/absent"
err_has "absent.dcm: No such file"
expect 2 "$TOMONODE" recon --set foo=1 -o "$work/none" "$work"
err_has "compression, description"
mkdir "$work/scans"
cp "$TOMONODE_SOURCE"/docs/samples/pet/*.hs "$work/scans"
expect 4 "$TOMONODE" recon -o "$work/none" "$work/scans"
err_has "(2 of them not DICOM); 2 Interfile headers are there: name the .hs files"
mkdir "$work/truth"
echo '{}' >"$work/truth/truth.json"
for path in "$work/truth" "$work/truth/truth.json"; do
	expect 4 "$TOMONODE" recon -o "$work/none" "$path"
	err_has "in 1 file (1 of them not DICOM)"
	! grep -q "holds DICOM" "$work/err" || fail "a file of its own is taken for DICOM: $(cat "$work/err")"
done
touch "$work/scan.s" "$work/scan.hs"
expect 4 "$TOMONODE" recon -o "$work/none" "$work/scan.s"
err_has "scan.s is data without a header: name its Interfile header, scan.hs"
expect 4 "$TOMONODE" recon --attribute Radionuclide=F18 -o "$work/none" "$work/scans/emission.hs"
err_has "tomonode recon: $work/scans/emission.hs: cannot open "
[ ! -e "$work/none" ] || fail "what was refused has written something"

# check
expect 0 "$TOMONODE" check
out_has "embedded defaults: no problems"
out_has "route         dbt: dbt from anybody through dbt-osem to pacs"
out_has "status page   127.0.0.1 port 11180"
[ "$(wc -l <"$work/out")" -le 12 ] || fail "what matters fits no screen: $(wc -l <"$work/out") lines"
! grep -q '^protocol ' "$work/out" || fail "check lists protocols although nobody asked"
expect 0 "$TOMONODE" check --verbose
out_has "protocol      dbt-osem: "
out_has "scanner       siemens-mmr: "
expect 0 "$TOMONODE" check -c "$TOMONODE_SOURCE/conf/defaults.conf"
printf 'node = { port = 104; };\n' >"$work/good.conf"
expect 0 "$TOMONODE" check --config="$work/good.conf"
out_has "port 104"
printf 'node = {\n  port = 70000;\n  prot = 1;\n};\n' >"$work/bad.conf"
expect 3 "$TOMONODE" check -c "$work/bad.conf"
err_has "$work/bad.conf:2: key 'port' of node: 70000; allowed: a whole number from 1 to 65535"
err_has "$work/bad.conf:3: key 'prot' of node is not known, did you mean 'port'?"
[ "$(wc -l <"$work/err")" -eq 2 ] || fail "two problems, not $(wc -l <"$work/err") lines"
expect 3 "$TOMONODE" check --json -c "$work/bad.conf"
json_is 'd["ok"] is False and d["code"] == 3 and len(d["problems"]) == 2'
expect 0 "$TOMONODE" check --json -c "$work/good.conf"
json_is 'd["config"]["status"]["enabled"] in (True, False) and "spool" in d["config"]["node"] and len(d["config"]["routes"]) > 0'
json_is 'd["ok"] is True and d["config"]["node"]["port"] == 104 and d["config"]["node"]["check_called"] is False'
# All entries of the embedded defaults, in their order
names() { # names SECTION
	sed -n "/^$1 = (/,/^);/s/^\t\tname = \"\([^\"]*\)\".*/\"\1\",/p" "$TOMONODE_SOURCE/conf/defaults.conf" | tr -d '\n'
}
json_is "[p['name'] for p in d['config']['protocols']] == [$(names protocols)] and len(d['config']['protocols']) >= 16"
json_is 'd["config"]["routes"][0]["destinations"] == ["pacs"] and d["config"]["routes"][1]["kind"] == "pet"'
json_is "[s['name'] for s in d['config']['scanners']] == [$(names scanners)] and len(d['config']['scanners']) >= 3"
json_is '"tile" not in d["config"]["protocols"][-1] and "matrix" not in d["config"]["protocols"][0]'
printf 'node = { bind = "0.0.0.0"; require_known_peer = false; };\n' >"$work/open.conf"
expect 0 "$TOMONODE" check -c "$work/open.conf"
err_has "warning: node listens on 0.0.0.0"
# What `serve` would refuse as root
printf 'node = { user = "root"; };\n' >"$work/root.conf"
if [ "$(id -u)" -eq 0 ]; then
	expect 0 "$TOMONODE" check -c "$work/good.conf"
	err_has "warning: \`tomonode serve\` would refuse to run, as you are root: started as root: set node.user"
	out_has "$work/good.conf: no problems, but warnings, see above"
fi
expect 0 "$TOMONODE" check -c "$work/root.conf"
! grep -qF "started as root" "$work/err" || fail "a warning of root with a user"
expect 0 env TOMONODE_CONF="$work/good.conf" "$TOMONODE" check
out_has "$work/good.conf: no problems"
expect 3 env TOMONODE_CONF="$work/bad.conf" "$TOMONODE" check
expect 0 env TOMONODE_CONF="$work/bad.conf" "$TOMONODE" check -c "$work/good.conf"
expect 3 env TOMONODE_CONF="$work/bad.conf" "$TOMONODE" list --json
json_is 'd["code"] == 3'
expect 3 env TOMONODE_CONF="$work/absent.conf" "$TOMONODE" serve
err_has "$work/absent.conf: No such file"
expect 0 env -u TOMONODE_CONF "$TOMONODE" check
out_has "embedded defaults: no problems"
expect 0 "$TOMONODE" help list
out_has "the tomonode.conf of the"
expect 3 "$TOMONODE" check -c "$work/absent.conf"
err_has "$work/absent.conf: No such file"
expect 3 "$TOMONODE" check -c "$work"
err_has "not a regular file"
expect 2 "$TOMONODE" check stray
expect 2 "$TOMONODE" check -c
err_has "needs a value"
expect 3 "$TOMONODE" recon -c "$work/bad.conf" -o "$work/o" "$work"

# Which routes the cases of a folder would take
expect 0 "$TOMONODE" simulate dbt --binning 16 --views 3 -o "$work/exam"
cat >"$work/routes.conf" <<'END'
routes = ( { name = "pets"; kind = "pet"; protocols = [ "pet-mlem" ]; destinations = [ "pacs" ]; },
           { name = "named"; study_description = "?*nothing of this"; protocols = [ "dbt-fbp" ]; destinations = [ "pacs" ]; },
           { name = "sent"; calling = "MG1"; protocols = [ "dbt-osem", "dbt-fbp" ]; destinations = [ "pacs" ]; } );
END
expect 3 "$TOMONODE" check -c "$work/routes.conf" --route "$work/exam"
out_has "route pets: not for this case, its kind is another"
out_has "route named: not for this case, its study_description is another"
out_has "no result: the case would be held"
expect 0 "$TOMONODE" check -c "$work/routes.conf" --route "$work/exam" --calling MG1
out_has "result: dbt-fbp to pacs"
expect 0 "$TOMONODE" check -c "$work/routes.conf" --route "$work/exam" --calling MG1 --json
json_is 'd["ok"] and [c["kind"] for c in d["cases"]] == ["dbt"] and d["cases"][0]["results"][1] == {"protocol": "dbt-fbp", "destinations": ["pacs"]}'
json_is '[(r["route"], r["used"], r["mismatch"]) for r in d["cases"][0]["routes"]] == [("pets", False, "kind"), ("named", False, "study_description"), ("sent", True, "")]'
expect 3 "$TOMONODE" check -c "$work/routes.conf" --route "$work/exam" --json
json_is 'not d["ok"] and d["code"] == 3 and d["cases"][0]["results"] == []'
expect 3 "$TOMONODE" check -c "$work/bad.conf" --route "$work/exam" --json
json_is 'd["code"] == 3 and len(d["problems"]) == 2'
expect 4 "$TOMONODE" check --route "$work/routes.conf"

# The reference in the manual equals the output of check --describe
expect 0 "$TOMONODE" check --describe
sed -n '/^<!-- begin: tomonode check --describe -->$/,/^<!-- end -->$/p' "$TOMONODE_SOURCE/docs/configuration.md" | sed '1d;$d' >"$work/doc"
[ -s "$work/doc" ] || fail "docs/configuration.md holds no reference"
cmp -s "$work/out" "$work/doc" || fail "docs/configuration.md is not what check --describe prints: $(diff "$work/out" "$work/doc" | head -5)"

# For a spool without a journal list also prints that there is none; a journal without read permission is not exit code 7 (refused by a peer).
expect 0 "$TOMONODE" list
out_has "no jobs"
err_has "$work/spool has no journal"
! grep -qF "Critical" "$work/out" || fail "a problem before the first start: $(cat "$work/out")"
for command in "show 99" "redo 99" "retry 99" "cancel 99" "priority 99 high"; do
	expect 8 "$TOMONODE" $command
	err_has "no job 99: $work/spool has no journal: no node has run with this spool, or your node uses another one"
done
if [ "$(id -u)" -eq 0 ] && command -v setpriv >/dev/null; then
	mkdir "$work/spool" && touch "$work/spool/journal.db" && chmod 600 "$work/spool/journal.db" && chmod 755 "$work"
	expect 1 setpriv --reuid 65534 --regid 65534 --clear-groups "$TOMONODE" list
	err_has "journal $work/spool/journal.db: Permission denied"
	# an output folder that cannot be made is exit code 1 in all commands, an input that may not be read 4
	expect 0 "$TOMONODE" simulate pet --scanner small --interfile -o "$work/pet"
	expect 0 "$TOMONODE" recon --device cpu --set iterations=1 --set matrix=16 -o "$work/image" "$work/pet/emission.hs"
	chmod 644 "$work/image"/* && mkdir -m 777 "$work/open"
	for folder in "$work/none" /proc/none; do
		for command in "import $work/pet/emission.hs" "report $work/image" "export $work/image" "simulate pet --scanner small" "recon $work/pet/emission.hs"; do
			out=$folder
			[ "${command%% *}" = export ] && out=$folder.nii.gz
			expect 1 setpriv --reuid 65534 --regid 65534 --clear-groups "$TOMONODE" $command -o "$out"
		done
	done
	chmod 600 "$work/pet/emission.hs"
	expect 4 setpriv --reuid 65534 --regid 65534 --clear-groups "$TOMONODE" import "$work/pet/emission.hs" -o "$work/open"
	err_has "Permission denied"
else
	echo "skipped: a journal that may not be read: needs root and setpriv"
fi

# devices
expect 0 "$TOMONODE" devices
grep -q '^cpu' "$work/out" || fail "devices lacks cpu"
expect 0 "$TOMONODE" devices --json
json_is 'any(e["device"].startswith("cpu") for e in d["devices"])'

# -o makes missing parents, of a folder and of a file
deep=$work/deep/er
expect 0 "$TOMONODE" simulate parallel --size 16 --angles 12 -o "$deep/lines"
expect 0 "$TOMONODE" simulate pet --scanner small --size 0.3 -o "$deep/pet"
expect 0 "$TOMONODE" simulate dbt --binning 16 --views 3 -o "$deep/exam"
expect 0 "$TOMONODE" recon --device cpu -o "$deep/series/ct" "$deep/lines"
expect 0 "$TOMONODE" export -o "$deep/nifti/image.nii" "$deep/series"
expect 0 "$TOMONODE" export -o "$deep/interfile/lines.hs" "$deep/lines"
expect 0 "$TOMONODE" import -o "$deep/imported/lines" "$deep/interfile/lines.hs"
expect 0 "$TOMONODE" report -o "$deep/reports/ct" "$deep/series"
for file in lines/truth.json pet/truth.json exam/truth.json nifti/image.nii interfile/lines.hs imported/lines/lines.dcm; do
	[ -f "$deep/$file" ] || fail "no $file"
done

# Examples in every --help: each can be parsed, and its protocol, scanner and command exist
protocols=$(names protocols)
for command in $("$TOMONODE" help --complete "" | grep -vx help); do
	"$TOMONODE" help "$command" | sed -n '/^Examples:/,/^$/s/^  tomonode //p' >"$work/examples"
	[ -s "$work/examples" ] || fail "--help of $command has no example"
	while IFS= read -r line; do
		# shellcheck disable=SC2086 # words of a command line
		"$TOMONODE" help --parse $line >"$work/out" 2>"$work/err" || fail "an example of $command: $line: $(head -1 "$work/err")"
		protocol=$(printf '%s\n' "$line" | sed -n 's/.*--protocol \([^ ]*\).*/"\1"/p')
		case $protocols in *"$protocol"*) ;; *) fail "an example of $command: no protocol $protocol" ;; esac
	done <"$work/examples"
	# Manual pages: one for each command, without a warning of the tools that are installed
	page=$TOMONODE_BUILD/man/tomonode-$command.1
	[ -s "$page" ] || fail "there is no $page"
	grep -qF ".BR tomonode\\-$command (1)" "$TOMONODE_BUILD/man/tomonode.1" || fail "tomonode.1 does not name $command"
	"$TOMONODE" help "$command" | sed -n 's/^  .*--\([a-z-]*\).*/\1/p' | sed 's/-/\\\\-/g' | while IFS= read -r option; do
		grep -q -- "$option" "$page" || echo "$option"
	done >"$work/out"
	[ ! -s "$work/out" ] || fail "$page lacks $(tr '\n' ' ' <"$work/out")"
	sed -n '/SEE ALSO/,$s/^\.BR \(tomonode[a-z\\-]*\) (1),*$/\1/p' "$page" | tr -d '\\' >"$work/out"
	[ "$(wc -l <"$work/out")" -gt 1 ] || fail "$page names no other page"
	while IFS= read -r other; do
		[ -s "$TOMONODE_BUILD/man/$other.1" ] || fail "$page names $other, which is no page"
	done <"$work/out"
done
for page in "$TOMONODE_BUILD"/man/*.1; do
	if command -v mandoc >/dev/null; then
		mandoc -Tlint "$page" >"$work/out" 2>&1 || fail "$(head -3 "$work/out")"
	fi
	if command -v man >/dev/null && command -v groff >/dev/null; then
		man --warnings -E UTF-8 -l "$page" 2>"$work/err" >/dev/null
		[ ! -s "$work/err" ] || fail "$page: $(head -3 "$work/err")"
	fi
done

# Completion: what the program offers, and what bash makes of it
completes() { # completes "WORDS" ARGUMENT...: exactly these words, in this order
	wanted=$1
	shift
	got=$("$TOMONODE" help --complete "$@" | tr '\n' ' ')
	[ "$got" = "$wanted" ] || fail "completion of '$*': $got"
}
completes "test-peer test-alert " tes
completes "recon " help reco
completes "--protocol " recon --pro
completes "pet-mlem pet-osem pet-fbp-preview " recon --protocol pet-
completes "dbt pet parallel " simulate ""
completes "siemens-mmr siemens-mct siemens-vision-600 siemens-quadra small " simulate pet --scanner s
completes "pet-osem " redo 17 --protocol pet-o
completes "prior= prior_weight= prior_gamma= prior_across= " recon --set pri
completes "matrix= " redo 17 --set ma
completes "low normal high " priority 17 ""
completes "" priority ""
printf 'protocols = ( { name = "mine"; kind = "pet"; } );\n' >"$work/mine.conf"
completes "mine " redo -c "$work/mine.conf" 17 --protocol mi
completes "fit " profile f
completes ":folders " recon -o ""
completes ":files hs " recon --attenuation ""
completes ":files " recon ""
completes "" list ""
completes "" nonsense ""
if command -v bash >/dev/null; then
	mkdir "$work/complete" "$work/complete/folder"
	touch "$work/complete/f.hs" "$work/complete/f.txt"
	ln -s "$TOMONODE" "$work/complete/tomonode"
	cat >"$work/complete.sh" <<-'END'
		. "$1"
		cd "$2" || exit 1
		shift 2
		COMP_WORDS=("$@")
		COMP_CWORD=$(($# - 1))
		_tomonode
		printf '%s ' "${COMPREPLY[@]}"
	END
	bash_completes() { # bash_completes "WORDS" WORD...
		wanted=$1
		shift
		got=$(bash "$work/complete.sh" "$TOMONODE_SOURCE/deploy/completion/tomonode.bash" "$work/complete" ./tomonode "$@")
		[ "$got" = "$wanted" ] || fail "completion of '$*' by bash: $got"
	}
	bash_completes "test-peer test-alert " tes
	bash_completes "folder f.hs " recon --attenuation f
	bash_completes "folder " recon -o f
	bash_completes "pet-osem " recon --protocol pet-o
	bash_completes "matrix= " recon --set ma
fi
if command -v zsh >/dev/null; then
	zsh -n "$TOMONODE_SOURCE/deploy/completion/_tomonode" || fail "zsh refuses the completion"
	cat >"$work/complete.zsh" <<-'END'
		compadd() { shift; print -r -- "$@" }
		_files() { print -r -- files "$@" }
		file=$1
		shift
		words=("$@")
		CURRENT=$#words
		source $file
	END
	zsh_completes() { # zsh_completes "WORDS" WORD...
		wanted=$1
		shift
		got=$(zsh -f "$work/complete.zsh" "$TOMONODE_SOURCE/deploy/completion/_tomonode" "$TOMONODE" "$@")
		[ "$got" = "$wanted" ] || fail "completion of '$*' by zsh: $got"
	}
	zsh_completes "test-peer test-alert" tes
	zsh_completes "dbt pet parallel" simulate ""
	zsh_completes "pet-osem" recon --protocol pet-o
	zsh_completes "files -g *.(hs)" recon --attenuation ""
	zsh_completes "files -/" recon -o ""
fi

[ "$failed" -eq 0 ] && echo "all as expected"
exit "$failed"
