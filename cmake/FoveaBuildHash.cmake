# cmake -DOUTPUT=h -DNAME=COMPILER -DVERSION=v -DFILES=a;b -P FoveaBuildHash.cmake
# Writes a header with the hash of the files, FOVEA_<NAME>_HASH; leaves it alone if
# it is unchanged.
cmake_minimum_required(VERSION 3.20)
set(all "")
foreach(file IN LISTS FILES)
  file(SHA256 "${file}" hash)
  string(APPEND all "${hash}")
endforeach()
string(SHA256 hash "${all}")
string(SUBSTRING "${hash}" 0 16 hash)
file(CONFIGURE OUTPUT "${OUTPUT}" @ONLY CONTENT
"#define FOVEA_VERSION \"@VERSION@\"
#define FOVEA_@NAME@_HASH \"@hash@\"
")
