-- Its value means nothing: to set it is a write that a commit must wait for, and nobody reads it.
CREATE SEQUENCE holdfast.flush_mark;
