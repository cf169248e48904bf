# Writes OUT, an initializer with the text of each of FILES; run by a build rule:
# cmake -DOUT=... -DFILES=a:b -P EmbedTexts.cmake
string(REPLACE ":" ";" files "${FILES}")
set(literals "")
foreach(file IN LISTS files)
  file(READ "${file}" text)
  string(APPEND literals "R\"text(${text})text\",\n")
endforeach()
file(WRITE "${OUT}" "${literals}")
