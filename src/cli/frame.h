/* A picture in the terminal that is drawn again and again: lines cut to its size, on a screen of their own, so that
 * nothing of the user's is overwritten and a changed size does no harm. The last one stays when it is closed.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef HF_CLI_FRAME_H
#define HF_CLI_FRAME_H

#include "cli/session.h"
#include "util/buffer.h"

struct cli_frame {
    bool colors;
    bool open; /* it has the screen */
    const char *ellipsis;
    int columns;
    int rows;
    int line; /* lines so far */
    int used; /* columns of the line so far */
    struct hf__buffer text;
};

/* After the first picture was shown: keys are read as they are pressed and are not shown, until the screen is given back,
 * in whatever way. */
void cli_frame_take_keys(void);
/* Nothing is shown yet. */
void cli_frame_begin(struct cli_frame *frame, const struct cli_session *session);
/* Adds to the line what still fits. `color` is an escape sequence or "". */
void cli_frame_add(struct cli_frame *frame, const char *color, const char *text);
void cli_frame_addf(struct cli_frame *frame, const char *color, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
/* Fills up with blanks to this column. */
void cli_frame_pad(struct cli_frame *frame, int column);
void cli_frame_end_line(struct cli_frame *frame);
/* Shows it, and remembers it for the end. */
void cli_frame_show(struct cli_frame *frame);
/* Gives the screen back and leaves the last picture there. */
void cli_frame_close(struct cli_frame *frame);

#endif
