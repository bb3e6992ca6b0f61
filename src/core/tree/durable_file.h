// Files that survive a crash: written to the disk beside their place, then put there.
#pragma once

#include <filesystem>
#include <initializer_list>
#include <string>
#include <string_view>

namespace blindmatch {

// Replaces `path` by the parts, one after the other. A kill or a power cut leaves the old file or the new one, whole.
// Throws std::system_error where that fails, and then leaves the old file.
void replace_file(const std::filesystem::path& path, std::initializer_list<std::string_view> parts);

// The path in UTF-8, for messages. On Windows path::string() fails where the code page lacks a character.
std::string shown(const std::filesystem::path& path);

}  // namespace blindmatch
