/* A command line as words, without a shell.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef HF_CLI_WORDS_H
#define HF_CLI_WORDS_H

#include <holdfast/error.h>

/* Splits at blanks. 'single' and "double" quotes keep blanks; a backslash keeps the next character (in double quotes
 * only \" and \\, in single quotes none). Nothing is expanded. `*out` ends with NULL and is one block: free(*out). */
hf_code cli_words_split(char ***out, const char *text, hf_error *err) HF_MUST_CHECK;

#endif
