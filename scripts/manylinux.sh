# Read by scripts that build for older distributions (wheels.sh, archives.sh): makes a
# folder that links against the C library $manylinux_glibc on a newer one, without a
# container. zig has every version's symbols: what is linked finds those alone, of the
# version they had then, or the link fails. Code is compiled as in any build.
manylinux_glibc=2.28
manylinux_tag=manylinux_${manylinux_glibc/./_}_$(uname -m)

# manylinux_tools WORK PACKAGE...: pip's packages in WORK/venv, whose programs are found.
manylinux_tools() {
  local work=$1 stamp
  shift
  [[ -x $work/venv/bin/pip ]] || python3 -m venv "$work/venv"
  for package; do
    stamp=$work/venv/has-$package
    if [[ ! -e $stamp ]]; then
      "$work/venv/bin/pip" install -q "$package"
      touch "$stamp"
    fi
  done
  PATH=$work/venv/bin:$PATH # behind the others, or bash goes on taking their python3
}

# manylinux_link WORK: makes WORK/link-VERSION once, and sets LDFLAGS, which CMake takes
# into the linker's flags where a folder is configured for the first time.
manylinux_link() {
  local work=$1 folder=$1/link-$manylinux_glibc making cache name file
  [[ $work != *[[:space:]]* ]] || { # which divide LDFLAGS
    echo "manylinux.sh: '$work' has spaces, which the linker's flags cannot have; FOVEA_BUILD_DIR" \
      "names another folder" >&2
    return 1
  }
  if [[ ! -d $folder ]]; then
    # The one that was tried: how its cache looks is nowhere promised.
    manylinux_tools "$work" ziglang==0.17.1
    making=$work/link-making cache=$work/zig-cache
    rm -rf "$making" "$cache"
    mkdir -p "$making" "$cache"
    # zig compiles these for a program and leaves them in its cache.
    echo 'int main(void) { return 0; }' >"$cache/empty.c"
    ZIG_GLOBAL_CACHE_DIR=$cache ZIG_LOCAL_CACHE_DIR=$cache python-zig cc -O2 -fPIE -pie \
      -target "$(uname -m)-linux-gnu.$manylinux_glibc" "$cache/empty.c" -o "$cache/empty"
    for name in Scrt1.o libc_nonshared.a libc.so.6 libm.so.6 libpthread.so.0 libdl.so.2 \
      librt.so.1 libutil.so.1 libresolv.so.2 libld.so.2; do
      file=$(find "$cache/o" -name "$name" -print -quit)
      [[ -n $file ]] || {
        echo "manylinux.sh: zig $(python-zig version) made no $name in $cache; another version" \
          "of ziglang may: $work/venv/bin/pip install ziglang==..." >&2
        return 1
      }
      cp "$file" "$making/$name"
      case $name in
      libc.so.6 | libld.so.2 | *.o | *.a) ;;
      *) ln -s "$name" "$making/${name%.so.*}.so" ;; # for -lm and the like
      esac
    done
    "${CC:-cc}" -O2 -fPIC -fno-builtin -c "$(dirname "${BASH_SOURCE[0]}")/manylinux.c" \
      -o "$making/newer.o"
    ar rcs "$making/libnewer.a" "$making/newer.o"
    # Threads and dlopen were in libraries of their own.
    echo "GROUP(libc.so.6 libc_nonshared.a libnewer.a AS_NEEDED(" \
      "libld.so.2 libpthread.so.0 libdl.so.2 librt.so.1 libm.so.6))" >"$making/libc.so"
    rm -rf "$cache"
    mv "$making" "$folder" # whole or not at all
  fi
  # The system's libgcc_s, in whose place there will be an older one, has newer needs.
  export LDFLAGS="-fuse-ld=lld -B$folder -L$folder -Wl,--allow-shlib-undefined"
}

# manylinux_faults FOLDER FILE: manylinux_check's lines of one file.
manylinux_faults() {
  local folder=$1 file=$2 symbols dynamic version limit kind name
  local system='lib(c|m|dl|rt|pthread|util|resolv|gcc_s|stdc\+\+)\.so\.[0-9]+'
  system+='|ld-linux-.*\.so\.[0-9]+'
  # Of what it says on its errors' stream some is no failure.
  symbols=$(LC_ALL=C readelf -VW "$file" 2>/dev/null) &&
    dynamic=$(LC_ALL=C readelf -dW "$file" 2>/dev/null) || {
    echo "readelf cannot read it"
    return
  }
  while read -r _ version; do
    limit=0
    case $version in
    GLIBC_*) limit=GLIBC_$manylinux_glibc ;;
    GCC_*) limit=GCC_8.0.0 ;;
    CXXABI_*) limit=CXXABI_1.3.6 ;; # what fovea_exceptions names, of GCC 4.7
    esac
    [[ $(printf '%s\n' "$version" "$limit" | sort -V | tail -1) == "$limit" ]] ||
      echo "needs $version"
  done < <(grep -Eo 'Name: (GLIBC|GCC|GLIBCXX|CXXABI)_[0-9A-Z.]+' <<<"$symbols" | sort -u)
  while read -r kind name; do
    if [[ $kind == NEEDED ]]; then
      [[ $name =~ ^($system)$ || -n $(find "$folder" -name "$name" -print -quit) ]] ||
        echo "needs $name"
    else
      for name in ${name//:/ }; do
        [[ $name == \$ORIGIN* ]] || echo "looks for libraries in $name"
      done
    fi
  done < <(sed -n 's/.*(\(NEEDED\|R.*PATH\)).*\[\(.*\)\]/\1 \2/p' <<<"$dynamic")
}

# manylinux_check FOLDER: prints what an older distribution would not run of the tree's
# programs and libraries, and fails where there is any: newer symbols of the C library or
# libgcc (of GCC 8, that such distributions have), more of libstdc++ than exceptions,
# libraries that are none of these nor the tree's, places that are not seen from the file
# itself.
manylinux_check() {
  local folder=$1 file count=0 faults=0 what
  command -v readelf >/dev/null || {
    echo "manylinux.sh: readelf, which checks what was made, is not there; Debian's binutils" \
      "has it" >&2
    return 1
  }
  while read -r file; do
    [[ $(head -c 4 "$file" | tr -d '\0') == $'\x7fELF' ]] || continue
    count=$((count + 1))
    while read -r what; do
      echo "  ${file#"$folder"/}: $what" >&2
      faults=$((faults + 1))
    done < <(manylinux_faults "$folder" "$file")
  done < <(find "$folder" -type f)
  echo "$count programs and libraries for $manylinux_tag, $faults faults"
  [[ $count -gt 0 && $faults -eq 0 ]]
}
