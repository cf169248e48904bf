//===- CacheDirectory.cpp - Where things are kept -------------------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fp8/Support/CacheDirectory.h"

#include "llvm/ADT/ScopeExit.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/Twine.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Process.h"

#include <cerrno>
#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <sys/stat.h>
#include <unistd.h>

using namespace mlir;

std::optional<std::string> fp8::getCacheDirectory(llvm::StringRef name) {
  // Unlike in LLVM's cache_directory, as the XDG Base Directory Specification
  // says: an empty or relative one is none.
  llvm::SmallString<128> directory;
  std::optional<std::string> xdg = llvm::sys::Process::GetEnv("XDG_CACHE_HOME");
  if (xdg && llvm::sys::path::is_absolute(*xdg))
    directory = *xdg;
  else if (llvm::sys::path::home_directory(directory))
    llvm::sys::path::append(directory, ".cache");
  else
    return std::nullopt;
  llvm::sys::path::append(directory, "fp8", name);
  return directory.str().str();
}

static llvm::Error fail(llvm::StringRef path, const llvm::Twine &message) {
  return llvm::createStringError("'" + path + "': " + message);
}

static llvm::Error failErrno(llvm::StringRef path) {
  return fail(path, std::error_code(errno, std::generic_category()).message());
}

/// What is kept is used as it is found: nobody else has made it, nor can they
/// change it.
static llvm::Error checkOwner(llvm::StringRef path, const struct stat &status,
                              llvm::StringRef kind) {
  if (status.st_uid != geteuid())
    return fail(path, "expected a " + kind + " of user " +
                          llvm::Twine(geteuid()) + ", but got one of user " +
                          llvm::Twine(status.st_uid));
  if (status.st_mode & (S_IWGRP | S_IWOTH))
    return fail(path, "expected a " + kind +
                          " that nobody else may write to, but got one of "
                          "mode 0" +
                          llvm::utostr(status.st_mode >> 6 & 7) +
                          llvm::utostr(status.st_mode >> 3 & 7) +
                          llvm::utostr(status.st_mode & 7));
  return llvm::Error::success();
}

/// Whether nobody but the user is in a group, as in those that many systems
/// make with each user.
static bool isPrivateGroup(gid_t group) {
  char userText[4096], groupText[4096];
  struct passwd user, *foundUser = nullptr;
  struct group entry, *foundGroup = nullptr;
  if (getpwuid_r(geteuid(), &user, userText, sizeof(userText), &foundUser) ||
      !foundUser || user.pw_gid != group ||
      getgrgid_r(group, &entry, groupText, sizeof(groupText), &foundGroup) ||
      !foundGroup || llvm::StringRef(entry.gr_name) != user.pw_name)
    return false;
  for (char **member = entry.gr_mem; *member; ++member)
    if (llvm::StringRef(*member) != user.pw_name)
      return false;
  return true;
}

static bool isWrittenByOthers(const struct stat &status) {
  return status.st_mode & S_IWOTH ||
         (status.st_mode & S_IWGRP && !isPrivateGroup(status.st_gid));
}

/// Whether nobody but the user and root may put something else in the place of
/// what is in a folder, and of what that is in. Of links, where they lead to
/// counts, and `path` has none.
static llvm::Error checkParents(llvm::StringRef path) {
  for (llvm::StringRef folder = llvm::sys::path::parent_path(path);
       !folder.empty(); folder = llvm::sys::path::parent_path(folder)) {
    struct stat status;
    if (::stat(folder.str().c_str(), &status) != 0)
      return failErrno(folder);
    if (status.st_uid != geteuid() && status.st_uid != 0)
      return fail(path, "expected it in folders of user " +
                            llvm::Twine(geteuid()) + " or root, but '" +
                            folder + "' is one of user " +
                            llvm::Twine(status.st_uid));
    if (isWrittenByOthers(status) && !(status.st_mode & S_ISVTX))
      return fail(path, "expected it in folders that nobody else may write "
                        "to, but '" +
                            folder + "' is none");
  }
  return llvm::Error::success();
}

llvm::Error fp8::checkCacheDirectory(llvm::StringRef directory) {
  llvm::SmallString<128> absolute(directory), real;
  if (llvm::sys::fs::make_absolute(absolute))
    return llvm::Error::success();
  // What is made there later is the user's.
  llvm::StringRef path = absolute;
  while (llvm::sys::fs::real_path(path, real) && !path.empty())
    path = llvm::sys::path::parent_path(path);
  struct stat status;
  // Whoever makes it has the same trouble, and says so.
  if (path.empty() || ::stat(real.c_str(), &status) != 0 ||
      !S_ISDIR(status.st_mode))
    return llvm::Error::success();
  if (path == absolute)
    if (llvm::Error error = checkOwner(real, status, "directory"))
      return error;
  return checkParents(path == absolute ? real.str() : (real + "/x").str());
}

llvm::Error fp8::makeCacheDirectory(llvm::StringRef directory) {
  if (std::error_code error = llvm::sys::fs::create_directories(
          directory, /*IgnoreExisting=*/true, llvm::sys::fs::owner_all))
    return fail(directory, error.message());
  return llvm::Error::success();
}

llvm::Expected<std::unique_ptr<llvm::MemoryBuffer>>
fp8::readCacheEntry(llvm::StringRef path) {
  // Without O_NONBLOCK, opening a pipe that nobody writes to would wait.
  int fd = ::open(path.str().c_str(),
                  O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW);
  if (fd < 0 && (errno == ENOENT || errno == ENOTDIR))
    return nullptr;
  if (fd < 0)
    return failErrno(path);
  llvm::scope_exit close([&] { ::close(fd); });
  struct stat status;
  if (::fstat(fd, &status) != 0)
    return failErrno(path);
  if (!S_ISREG(status.st_mode))
    return fail(path, "expected a regular file");
  if (llvm::Error error = checkOwner(path, status, "file"))
    return error;
  auto buffer = llvm::MemoryBuffer::getOpenFile(
      llvm::sys::fs::convertFDToNativeFile(fd), path, status.st_size,
      /*RequiresNullTerminator=*/false, /*IsVolatile=*/true);
  if (!buffer)
    return fail(path, buffer.getError().message());
  return std::move(*buffer);
}
