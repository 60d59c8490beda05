/* SANITIZED: a sanitizer watches this build, which is many times slower for it.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef HF_TESTS_SANITIZED_H
#define HF_TESTS_SANITIZED_H

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) /* as clang says it */
#define SANITIZED 1
#endif
#endif
#ifndef SANITIZED
#define SANITIZED 0
#endif

#endif
