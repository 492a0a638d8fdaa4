# SPDX-License-Identifier: Apache-2.0
# Text files as arrays of characters, terminated: -DOUT=header -DFILES=name=path;name=path
set(text "")
foreach(entry ${FILES})
  string(REGEX MATCH "^([a-z_]+)=(.*)$" _ "${entry}")
  set(name "${CMAKE_MATCH_1}")
  file(READ "${CMAKE_MATCH_2}" bytes HEX)
  string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${bytes}")
  string(APPEND text "static const char ${name}[] = {${bytes}0};\n")
endforeach()
file(WRITE ${OUT} "${text}")
