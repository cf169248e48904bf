# cmake -D JSON=FILE -D RECORD=NAME -D OUTPUT=FILE -P RecordText.cmake: writes the
# field `text` of a TableGen record, from what llvm-tblgen --dump-json printed.
file(READ "${JSON}" records)
string(JSON text GET "${records}" "${RECORD}" text)
file(WRITE "${OUTPUT}" "${text}")
