// Tests of the C++ core alone, without Python: -DBLINDMATCH_TESTS=ON, then ctest.
#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include <doctest/doctest.h>
