//! Files with errors about retries, limits, slow back-ends, sessions and services, as those of `errors`.

pub(crate) const BAD_RESILIENCE: &[(&str, &str)] = &[
    ("retry_budget.share", "[retry_budget]\nshare = 1.5\n"),
    ("retry_budget.least_per_s", "[retry_budget]\nleast_per_s = -1\n"),
    (
        "pool[0].retry_budget.shar",
        "[[pool]]\nname = \"a\"\n[pool.retry_budget]\nshar = 0.1\n[[backend]]\naddress = \"h:1\"\npool = \"a\"\n",
    ),
    ("backend[1].max_requests", "[[backend]]\naddress = \"h:1\"\nmax_requests = 0\n"),
    ("backend[1].max_waiting", "[[backend]]\naddress = \"h:1\"\nmax_waiting = \"many\"\n"),
    ("backend[1].address", "[[backend]]\naddress = \"srv:app.internal\"\n"),
    ("backend[1].address", "[[backend]]\naddress = \"srv:_http._tcp.app.internal:80\"\n"),
    ("backend[1].tls_name", "[[backend]]\naddress = \"srv:_https._tcp.app.internal\"\ntls = true\n"),
    ("health.slow_start", "[health]\nslow_start = \"soon\"\n"),
    ("ejection.slow_ratio", "[ejection]\nslow_ratio = 2000\n"),
    ("ejection.slow_requests", "[ejection]\nslow_requests = 1\n"),
    ("sticky.cookie", "[sticky]\ncookie = \"a b\"\n"),
    (
        "pool[0].sticky.cookie",
        "[sticky]\n[[pool]]\nname = \"a\"\n[pool.sticky]\ncookie = \"plimsoll\"\n\
         [[backend]]\naddress = \"h:1\"\npool = \"a\"\n",
    ),
    ("sticky.max_age", "[sticky]\nmax_age = \"0s\"\n"),
    ("sticky.same_site", "[sticky]\nsame_site = \"some\"\n"),
    (
        "sticky",
        "mechanism = \"handoff\"\n[[listener]]\naddress = \"10.0.0.9:80\"\n[[backend]]\naddress = \"h:1\"\n[sticky]\n#",
    ),
];
