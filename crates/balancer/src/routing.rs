//! Routes: which pool takes a request, under which configuration.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use plimsoll_config::{Config, Limits, RouteBody, RouteConfig, RouteHeader, RouteHost, Unmatched};
use plimsoll_policy::TargetId;

use crate::backend_pool::BackendPool;
use crate::http::RequestRefusal;
use crate::http::host::without_port;
use crate::http::route_path::RoutePath;
use crate::http::target_hash::TargetHash;
use crate::rate_limit::RateLimiter;
use crate::refusal_reason::RefusalReason;

const AMBIGUOUS: RequestRefusal =
    RequestRefusal::bad_request("a path that one reader takes for another one than the next reader does");

const TOO_OFTEN: RequestRefusal =
    RequestRefusal::of(429, "too many requests from this address").because(RefusalReason::RateLimit);

/// What becomes of the requests that one route takes.
pub(crate) struct Routed {
    /// The number of the pool.
    pub(crate) pool: u32,
    /// The configuration of the pool as requests by this route have it.
    pub(crate) config: Arc<Config>,
    /// How the pool identifies targets.
    pub(crate) hash: TargetHash,
    /// What the front-end itself answers.
    pub(crate) answer: Option<RequestRefusal>,
    /// Requests that it took.
    taken: Arc<AtomicU64>,
    /// Tells its limit on the rate from that of other routes, also over reloads.
    limit: u64,
}

/// The routes that have one host in common, by their paths.
#[derive(Default)]
struct ByPath {
    /// The index of each, those first that ask for most fields.
    routes: BTreeMap<Box<[u8]>, Vec<usize>>,
    /// The most segments that a path among them has.
    deepest: usize,
}

/// All routes.
pub(crate) struct Routing {
    exact: BTreeMap<Box<[u8]>, ByPath>,
    /// By the host below which they are.
    below: BTreeMap<Box<[u8]>, ByPath>,
    any: ByPath,
    /// In the order of the file; behind them what takes the other requests.
    routed: Vec<Routed>,
    configs: Vec<RouteConfig>,
    /// How often clients may ask; there if some route says so.
    limiter: Option<Arc<RateLimiter>>,
}

impl Routing {
    /// The routes of this configuration to these pools; counts go on where a route of the same name was there earlier. None where all
    /// requests go to the first pool as they are.
    pub(crate) fn of(config: &Config, pools: &[Arc<BackendPool>], earlier: Option<&Self>) -> Option<Self> {
        if config.routes.is_empty() && config.unmatched == Unmatched::Pool(None) {
            return None;
        }
        let named = |name: Option<&str>| match name {
            None => pools.first(),
            Some(name) => pools.iter().find(|pool| pool.name() == name && !pool.is_leaving()),
        };
        let mut routed = Vec::with_capacity(config.routes.len() + 1);
        for route in &config.routes {
            let taken = route.name.as_deref().and_then(|name| earlier?.taken_of(name)).unwrap_or_default();
            routed.push(Routed::of(named(route.pool.as_deref())?, Some(route), taken));
        }
        let last = earlier.and_then(|earlier| earlier.routed.last());
        let untaken = last.map(|last| Arc::clone(&last.taken)).unwrap_or_default();
        let unmatched = match &config.unmatched {
            Unmatched::Pool(name) => Routed::of(named(name.as_deref())?, None, untaken),
            Unmatched::NotFound => {
                let why = RequestRefusal::of(404, "there is nothing here").because(RefusalReason::NoRoute);
                Routed { answer: Some(why), ..Routed::of(pools.first()?, None, untaken) }
            }
        };
        routed.push(unmatched);
        let mut this = Self {
            exact: BTreeMap::new(),
            below: BTreeMap::new(),
            any: ByPath::default(),
            routed,
            configs: config.routes.clone(),
            limiter: None,
        };
        if config.routes.iter().any(|route| route.rate.is_some()) {
            let limiter = earlier.and_then(|earlier| earlier.limiter.clone());
            this.limiter = limiter.or_else(|| Some(Arc::new(RateLimiter::new(pools.first()?.hash))));
        }
        for (index, route) in config.routes.iter().enumerate() {
            let by_path = match &route.host {
                RouteHost::Exact(host) => this.exact.entry(host.as_bytes().into()).or_default(),
                RouteHost::Below(parent) => this.below.entry(parent.as_bytes().into()).or_default(),
                RouteHost::Any => &mut this.any,
            };
            by_path.add(index, route, &config.routes);
        }
        Some(this)
    }

    /// What becomes of a request for this host and path, which may have a query, with these fields; its index, and it.
    ///
    /// # Errors
    /// When it is not clear which path is asked for.
    pub(crate) fn find(
        &self,
        host: &[u8],
        path_query: &[u8],
        fields: &[httparse::Header<'_>],
    ) -> Result<(u32, &Routed), RequestRefusal> {
        let path = RoutePath::of(path_query)?;
        let host = plain_host(host);
        let index = self.index(&host, &path.plain, fields);
        if path.lenient.is_some_and(|lenient| self.index(&host, &lenient, fields) != index) {
            return Err(AMBIGUOUS);
        }
        // There are 10000 at most.
        Ok((index as u32, &self.routed[index]))
    }

    /// What `find` has told by this index.
    pub(crate) fn routed(&self, index: u32) -> &Routed {
        let last = self.routed.len() - 1;
        &self.routed[(index as usize).min(last)]
    }

    /// The route of this index; none where no route has taken a request.
    pub(crate) fn config_of(&self, index: u32) -> Option<&RouteConfig> {
        self.configs.get(index as usize)
    }

    /// Takes a request from this address into the limit of the route that has taken it; `address` is asked only where there is one.
    /// Returns what it is refused with, and the seconds after which it would be taken.
    pub(crate) fn limit(
        &self,
        index: u32,
        address: impl FnOnce() -> IpAddr,
    ) -> Option<(RequestRefusal, u32)> {
        let routed = self.routed(index);
        let rate = routed.config.taken.as_ref()?.rate?;
        let wait = self.limiter.as_ref()?.take(routed.limit, address(), rate).err()?;
        let seconds = wait.as_secs() + u64::from(wait.subsec_nanos() > 0);
        Some((TOO_OFTEN, u32::try_from(seconds).unwrap_or(u32::MAX)))
    }

    /// Counts a request that a route has taken.
    pub(crate) fn count(&self, index: u32) {
        self.routed(index).taken.fetch_add(1, Ordering::Relaxed);
    }

    /// The routes that have names, with the requests that each has taken; last what no route took.
    pub(crate) fn counts(&self) -> Vec<(&str, u64)> {
        let named = self.configs.iter().zip(&self.routed).filter_map(|(c, r)| Some((c.name.as_deref()?, r)));
        let count = |(name, routed): (_, &Routed)| (name, routed.taken.load(Ordering::Relaxed));
        named.chain(self.routed.last().map(|last| ("", last))).map(count).collect()
    }

    fn taken_of(&self, name: &str) -> Option<Arc<AtomicU64>> {
        let index = self.configs.iter().position(|route| route.name.as_deref() == Some(name))?;
        Some(Arc::clone(&self.routed[index].taken))
    }

    fn index(&self, host: &[u8], path: &[u8], fields: &[httparse::Header<'_>]) -> usize {
        let exact = self.exact.get(host).into_iter();
        let parents = host.iter().enumerate().filter(|&(_, &b)| b == b'.').map(|(dot, _)| &host[dot + 1..]);
        // Where there is none of them, long hosts are not looked up.
        let parents = parents.take(if self.below.is_empty() { 0 } else { host.len() });
        let below = parents.filter_map(|parent| self.below.get(parent));
        let by_host = exact.chain(below).chain([&self.any]);
        by_host
            .filter_map(|routes| routes.find(path, fields, &self.configs))
            .next()
            .unwrap_or(self.configs.len())
    }
}

impl Routed {
    fn of(pool: &BackendPool, route: Option<&RouteConfig>, taken: Arc<AtomicU64>) -> Self {
        let config = pool.config.load();
        let body_bytes = match route.map(|route| route.body) {
            Some(RouteBody::AtMost(most)) => most,
            _ => config.limits.body_bytes,
        };
        let answer = route.and_then(|route| route.answer).map(|status| {
            RequestRefusal::of(status, "the front-end does not pass such requests on")
                .because(RefusalReason::Route)
        });
        let config = Arc::new(Config {
            taken: route.cloned(),
            limits: Limits { body_bytes, ..config.limits.clone() },
            compression: config.compression.clone().filter(|_| route.is_none_or(|route| route.compression)),
            // What is of no use to a request.
            backends: Vec::new(),
            pools: Vec::new(),
            routes: Vec::new(),
            ..Config::clone(&config)
        });
        pool.lead_here(&config);
        Self { pool: pool.number, hash: pool.hash, answer, taken, limit: route.map_or(0, limit_of), config }
    }
}

/// The number of the limit of a route: the same for what takes the same requests.
fn limit_of(route: &RouteConfig) -> u64 {
    let fields = route.header.iter().map(|f| format!("{}:{:?}", f.name, f.value));
    let text = format!("{} {} {}", route.host, route.path, fields.collect::<Vec<_>>().join(" "));
    TargetId::from_key(text.as_bytes()).0
}

impl ByPath {
    fn add(&mut self, index: usize, route: &RouteConfig, all: &[RouteConfig]) {
        let path = if route.path == "/" { &[][..] } else { route.path.as_bytes() };
        self.deepest = self.deepest.max(path.iter().filter(|&&b| b == b'/').count());
        let alike = self.routes.entry(path.into()).or_default();
        alike.push(index);
        let exact = |i: usize| all[i].header.iter().filter(|field| field.value.is_some()).count();
        alike.sort_by_key(|&i| std::cmp::Reverse((all[i].header.len(), exact(i))));
    }

    /// The index of the most specific one that takes a request.
    fn find(&self, path: &[u8], fields: &[httparse::Header<'_>], all: &[RouteConfig]) -> Option<usize> {
        // Where each segment begins, and the end.
        let slashes = path.iter().enumerate().skip(1).filter(|&(_, &b)| b == b'/').map(|(at, _)| at);
        let mut ends = [0; MOST_ENDS];
        let mut count = 1;
        for end in slashes.chain([path.len()]).take(self.deepest.min(MOST_ENDS - 1)) {
            ends[count] = end;
            count += 1;
        }
        let mut longest_first = ends[..count].iter().rev();
        longest_first.find_map(|&end| {
            let alike = self.routes.get(&path[..end])?;
            alike.iter().copied().find(|&i| all[i].header.iter().all(|wanted| has(fields, wanted)))
        })
    }
}

/// The beginnings of a path that are looked up: paths of routes have at most 32 segments.
const MOST_ENDS: usize = 33;

fn has(fields: &[httparse::Header<'_>], wanted: &RouteHeader) -> bool {
    let is_it = |field: &httparse::Header<'_>| {
        field.name.eq_ignore_ascii_case(&wanted.name)
            && wanted.value.as_ref().is_none_or(|value| field.value.trim_ascii() == value.as_bytes())
    };
    fields.iter().any(is_it)
}

/// A host in lower case, without port and without the dot that may end it.
fn plain_host(host: &[u8]) -> Vec<u8> {
    let host = without_port(host);
    host.strip_suffix(b".").unwrap_or(host).to_ascii_lowercase()
}

#[cfg(test)]
mod tests;
