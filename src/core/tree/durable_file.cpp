#include "tree/durable_file.h"

#include <fcntl.h>

#include <algorithm>
#include <cerrno>
#include <system_error>

#ifdef _WIN32
#include <io.h>
#include <sys/stat.h>
#else
#include <unistd.h>
#endif

namespace blindmatch {
namespace {

// What the systems name differently. Sizes are at most kMostBytes: Windows takes an unsigned int and Linux and macOS
// write at most 2^31 bytes in one call.
constexpr std::size_t kMostBytes = std::size_t{1} << 30;

#ifdef _WIN32
int open_new(const std::filesystem::path& path) {
    return ::_wopen(path.c_str(), _O_WRONLY | _O_CREAT | _O_TRUNC | _O_BINARY | _O_NOINHERIT, _S_IREAD | _S_IWRITE);
}
std::ptrdiff_t write_some(int file, const char* data, std::size_t size) {
    return ::_write(file, data, static_cast<unsigned>(size));
}
bool reach_disk(int file) { return ::_commit(file) == 0; }
bool close_file(int file) { return ::_close(file) == 0; }
#else
int open_new(const std::filesystem::path& path) {
    return ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0666);
}
std::ptrdiff_t write_some(int file, const char* data, std::size_t size) { return ::write(file, data, size); }
bool reach_disk(int file) {
#ifdef F_FULLFSYNC  // macOS: fsync leaves the data in the cache of the drive. Network drives know fsync alone.
    if (::fcntl(file, F_FULLFSYNC) == 0) return true;
#endif
    return ::fsync(file) == 0;
}
bool close_file(int file) { return ::close(file) == 0; }
#endif

// False, with errno, if it fails.
bool write_file(const std::filesystem::path& path, std::string_view bytes) {
    const int file = open_new(path);
    if (file < 0) return false;
    bool written = true;
    while (written && !bytes.empty()) {
        const std::ptrdiff_t count = write_some(file, bytes.data(), std::min(bytes.size(), kMostBytes));
        if (count >= 0) bytes.remove_prefix(static_cast<std::size_t>(count));
        written = count > 0 || (count < 0 && errno == EINTR);
    }
    written = written && reach_disk(file);
    const int reason = errno;
    const bool closed = close_file(file);
    if (!written) errno = reason;
    return written && closed;
}

}  // namespace

void replace_file(const std::filesystem::path& path, std::string_view bytes) {
    std::filesystem::path temporary = path;
    temporary += ".new";
    std::error_code failure, ignored;
    if (!write_file(temporary, bytes)) {
        failure.assign(errno, std::generic_category());
    } else {
        std::filesystem::rename(temporary, path, failure);  // replaces on Windows as well
    }
    if (!failure) return;
    std::filesystem::remove(temporary, ignored);
    throw std::system_error(failure);
}

std::string shown(const std::filesystem::path& path) {
    const std::u8string text = path.u8string();
    return {text.begin(), text.end()};
}

}  // namespace blindmatch
