# SPDX-License-Identifier: Apache-2.0
# Write what the program says of itself: cmake -DPROGRAM=tomonode -DFOLDER=man -P man.cmake: the manual pages of the program and of each
# command, and in the folder above the reference of all keys and a configuration file with all defaults.
function(write_page name)
  execute_process(COMMAND ${PROGRAM} help --man ${ARGN} OUTPUT_VARIABLE page COMMAND_ERROR_IS_FATAL ANY)
  file(WRITE ${FOLDER}/${name}.1 "${page}")
endfunction()

file(REMOVE_RECURSE ${FOLDER})
execute_process(COMMAND ${PROGRAM} help --complete "" OUTPUT_VARIABLE commands COMMAND_ERROR_IS_FATAL ANY)
string(REGEX MATCHALL "[a-z-]+" commands "${commands}")
foreach(command ${commands})
  if(NOT command STREQUAL "help")
    write_page(tomonode-${command} ${command})
  endif()
endforeach()
execute_process(COMMAND ${PROGRAM} help --complete simulate "" OUTPUT_VARIABLE kinds COMMAND_ERROR_IS_FATAL ANY)
string(REGEX MATCHALL "[a-z-]+" kinds "${kinds}")
foreach(kind ${kinds})
  write_page(tomonode-simulate-${kind} simulate ${kind})
endforeach()
write_page(tomonode)
execute_process(COMMAND ${PROGRAM} check --describe OUTPUT_FILE ${FOLDER}/../configuration-keys.md COMMAND_ERROR_IS_FATAL ANY)
execute_process(COMMAND ${PROGRAM} check --defaults OUTPUT_FILE ${FOLDER}/../defaults.conf COMMAND_ERROR_IS_FATAL ANY)
