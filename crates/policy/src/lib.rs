//! Request-distribution policies: pure code, no clocks, no I/O.
