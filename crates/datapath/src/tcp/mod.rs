//! Established TCP connections taken out of one kernel and put into another, by `TCP_REPAIR`.
