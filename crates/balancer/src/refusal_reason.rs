//! Why the front-end itself answers a request, or ends a connection: each reason once, with what it means and what to change.

/// Declares the reasons: variant, name, status, meaning, remedy.
macro_rules! reasons {
    ($($variant:ident $name:literal $status:literal $meaning:literal $remedy:literal;)+) => {
        /// Why the front-end itself answers a request, or ends a connection.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub(crate) enum RefusalReason {
            $(#[doc = $meaning] $variant,)+
        }

        impl RefusalReason {
            /// All reasons, in the order of the documentation.
            pub(crate) const ALL: &[Self] = &[$(Self::$variant),+];

            /// The word for metrics and logs.
            pub(crate) const fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)+ }
            }

            /// Status codes that clients get; nothing where the connection ends.
            #[cfg(test)]
            const fn statuses(self) -> &'static str {
                match self { $(Self::$variant => $status,)+ }
            }

            /// What has happened.
            pub(crate) const fn meaning(self) -> &'static str {
                match self { $(Self::$variant => $meaning,)+ }
            }

            /// What to change.
            pub(crate) const fn remedy(self) -> &'static str {
                match self { $(Self::$variant => $remedy,)+ }
            }
        }

        /// How many reasons there are.
        pub(crate) const REASONS: usize = [$($name),+].len();
    };
}

reasons! {
    QueueFull "queue_full" "503"
        "the admission limit is reached, and the queue is full"
        "add back-ends, or raise `admission.limit` or `admission.queue`";
    QueueTimeout "queue_timeout" "503"
        "the request waited in the queue for `admission.queue_timeout`"
        "add back-ends, or raise `admission.limit` or `admission.queue_timeout`";
    QueueStanding "queue_standing" "503"
        "more comes than back-ends answer, so that requests wait in the queue for 100 ms only"
        "add back-ends, or raise `admission.limit`";
    NoBackend "no_backend" "503"
        "no back-end takes requests: each one is down, drained, ejected or of weight 0, or has failed this request"
        "look at `/backends`; `[health]` says when a back-end counts as down";
    NoReplica "no_replica" "503"
        "no back-end that holds the request's partition takes requests, or each has failed this request"
        "look at `/backends`, or name the partition in `partitions` of another back-end";
    Policy "policy" "503"
        "the policy chose no back-end"
        "look at `/policy`, or choose another `policy.name`";
    BackendRequests "backend_requests" "503"
        "each back-end that takes requests has `max_requests` of them, and none became free while the request could wait in the queue"
        "add back-ends, or raise their `max_requests`, `admission.queue` or `admission.queue_timeout`";
    BackendConnections "backend_connections" "503"
        "the back-end has `max_connections` connections, and none became free within `timeouts.connect`, or `max_waiting` requests waited already"
        "raise `max_connections` or `max_waiting` of the back-end";
    BackendUnreachable "backend_unreachable" "503"
        "no connection to the back-ends that were tried could be opened"
        "see that back-ends listen and are reachable; `limits.retries` says how many are tried, `timeouts.connect` for how long";
    NotHandedOff "not_handed_off" "503"
        "the request could not be handed off, and must not be proxied"
        "look at `plimsoll_backend_links`, or set `handoff.fallback = \"proxy\"`";
    BackendClosed "backend_closed" "502"
        "the back-end closed the connection before its answer"
        "look at the back-end's log; it should keep idle connections for longer than `timeouts.backend_idle`";
    BackendDown "backend_down" "502"
        "the back-end went down while it had the request"
        "look at the back-end's log; `[health]` says when a back-end counts as down";
    BadResponse "bad_response" "502"
        "the back-end's answer is not valid HTTP"
        "correct the back-end; the example in the log says what is wrong";
    ResponseLimit "response_limit" "502"
        "the head of the back-end's answer is larger than is allowed"
        "raise `limits.head` or `limits.fields`; the example in the log says which";
    BackendTimeout "backend_timeout" "504"
        "the back-end's answer did not begin within `timeouts.first_byte`"
        "raise `timeouts.first_byte`, or look at the back-end";
    ResponseCut "response_cut" ""
        "the answer broke off in the middle, or the connection was lost after it was handed off; the client's connection is reset"
        "look at the log of the back-end and of its agent; `timeouts.body` says how long a back-end may be silent";
    ClientTimeout "client_timeout" ""
        "the client took its answer, or sent a body that its back-end waits for, too slowly: nothing for `timeouts.body`, or less than 1 KiB/s; its connection is reset"
        "raise `timeouts.body`, or look at the client";
    Stopping "stopping" "503"
        "the front-end stopped, and the request had not ended within `timeouts.drain`; where the answer had begun, the client's connection is reset"
        "raise `timeouts.drain`";
    NoRoute "no_route" "404"
        "no route takes the request"
        "add a [[route]], or write the name of a pool as `unmatched`";
    Route "route" "4xx, 5xx"
        "a route has the front-end answer such requests itself"
        "remove `answer` from the [[route]]";
    RateLimit "rate_limit" "429"
        "the client asks more often than the route's `rate` allows"
        "look at the client, or raise `rate` or `rate_burst`";
    Malformed "malformed" "400"
        "the request is not valid HTTP"
        "correct the client; the answer says what is wrong";
    Unsupported "unsupported" "417, 501, 505"
        "the request asks for what the front-end does not do"
        "correct the client; the answer says what is not supported";
    HeadLimit "head_limit" "414, 431"
        "the request's head is larger than is allowed"
        "raise `limits.head` or `limits.fields`";
    BodyLimit "body_limit" "413"
        "the request's body is larger than is allowed"
        "raise `limits.body`, or `body` of its route";
    HeadTimeout "head_timeout" "408"
        "the request's head did not come within `timeouts.head`"
        "raise `timeouts.head`";
    BodyTimeout "body_timeout" "408"
        "the request's body came too slowly: nothing for `timeouts.body`, or less than 1 KiB/s"
        "raise `timeouts.body`";
    PlacedTwice "placed_twice" "508"
        "the address of a back-end leads to a front-end beside this one"
        "correct `address` of the back-ends, or `peers.others`";
    ConnectionsFull "connections_full" "none: it waits"
        "as many connections are open as may be, so that a further one waits until another one ends"
        "raise `limits.connections` and the limit on open files";
    MadeRoom "made_room" "connection ends, or 408"
        "a connection without a whole request was closed, as all places were taken and others waited for one"
        "raise `limits.connections` and the limit on open files, or lower `timeouts.idle`";
    Http2 "http2" ""
        "the client broke a rule of HTTP/2; its stream is reset, or its connection closed"
        "correct the client; the log says at level debug which rule it was";
    ProxyHeader "proxy_header" ""
        "a connection from an address in `proxy_protocol` of the listener did not begin with a header of the PROXY protocol that says whose it is; it is closed"
        "have the proxy send such a header, or remove its address from `proxy_protocol`";
    Flood "flood" ""
        "the client sent too many frames of HTTP/2 that ask for nothing, or reset too many streams: more than 1,000 at once; its connection is closed"
        "look at the client";
}

impl RefusalReason {
    /// What stands for a status where nothing else is said; nothing where it is no refusal.
    pub(crate) const fn of_status(status: u16) -> Option<Self> {
        Some(match status {
            400 => Self::Malformed,
            408 => Self::BodyTimeout,
            413 => Self::BodyLimit,
            414 | 431 => Self::HeadLimit,
            417 | 501 | 505 => Self::Unsupported,
            502 => Self::BackendClosed,
            503 => Self::NoBackend,
            504 => Self::BackendTimeout,
            508 => Self::PlacedTwice,
            _ => return None,
        })
    }

    /// Whether the request ends without a fault of its back-end.
    pub(crate) const fn is_not_by_backend(self) -> bool {
        self.is_by_client() || matches!(self, Self::Stopping | Self::MadeRoom)
    }

    /// Whether the client is at fault, so that nobody here has to act.
    pub(crate) const fn is_by_client(self) -> bool {
        matches!(
            self,
            Self::NoRoute
                | Self::Route
                | Self::RateLimit
                | Self::Malformed
                | Self::Unsupported
                | Self::HeadLimit
                | Self::BodyLimit
                | Self::HeadTimeout
                | Self::BodyTimeout
                | Self::ClientTimeout
                | Self::Flood
                | Self::Http2
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_has_every_reason() {
        let rows = RefusalReason::ALL.iter().map(|r| {
            let statuses = if r.statuses().is_empty() { "connection ends" } else { r.statuses() };
            format!("| `{}` | {statuses} | {} | {} |\n", r.name(), r.meaning(), r.remedy())
        });
        let table = format!(
            "| Reason | Status | What has happened | What to do |\n| --- | --- | --- | --- |\n{}",
            rows.collect::<String>()
        );
        let page = include_str!("../../../docs/refusals.md");
        assert!(page.contains(&table), "docs/refusals.md must hold this table:\n{table}");
    }

    #[test]
    fn every_key_of_a_remedy_is_a_key() {
        let reference = include_str!("../../../docs/configuration.md");
        for reason in RefusalReason::ALL {
            let text = format!("{} {}", reason.meaning(), reason.remedy());
            for quoted in text.split('`').skip(1).step_by(2).filter(|q| !q.contains(['/', ' ', '['])) {
                let key = quoted.rsplit('.').next().unwrap();
                let is_metric = quoted.starts_with("plimsoll_");
                assert!(
                    is_metric || reference.contains(&format!("| `{key}` |")),
                    "{quoted} of {}",
                    reason.name()
                );
            }
        }
    }
}
