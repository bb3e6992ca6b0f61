// Files that survive a crash: written to the disk beside their place, then put there.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace blindmatch {

// Replaces what `path` holds. A kill or a power cut leaves the old file or the new one, whole. Throws
// std::system_error if it fails, and then leaves the old file.
void replace_file(const std::filesystem::path& path, std::string_view bytes);

// The path in UTF-8, for messages. On Windows path::string() fails where the code page lacks a character.
std::string shown(const std::filesystem::path& path);

}  // namespace blindmatch
