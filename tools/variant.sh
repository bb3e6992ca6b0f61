# For tools/sanitize and tools/cross: source it, with $python set to the interpreter of the development environment.

# variant HOME CMAKE-OPTIONS...: build the core with these options, and make HOME/venv, an environment of its own: the
# packages of $python, our sources, and that core.
variant() {
  local home=$1 site scripts
  shift
  site=$("$python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
  scripts=$("$python" -c 'import sysconfig; print(sysconfig.get_path("scripts"))')
  PATH=$scripts:$PATH cmake -S . -B "$home/build" -G Ninja -DCMAKE_BUILD_TYPE=Release \
    -DPython_EXECUTABLE="$(command -v "$python")" -DBLINDMATCH_WERROR=ON \
    -Dnanobind_DIR="$("$python" -m nanobind --cmake_dir)" "$@" >"$home.log" || { cat "$home.log"; exit 1; }
  PATH=$scripts:$PATH cmake --build "$home/build" -j "${JOBS:-2}" >"$home.log" || { cat "$home.log"; exit 1; }
  rm -rf "$home/package"
  mkdir -p "$home/package/blindmatch"
  ln -s "$PWD"/src/blindmatch/* "$home/package/blindmatch/"
  cp "$home"/build/_core*.so "$home/package/blindmatch/"
  "$python" -m venv --without-pip --symlinks "$home/venv"
  printf '%s\n' "$home/package" "$site" >"$home/venv/lib/python$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')/site-packages/paths.pth"
}
