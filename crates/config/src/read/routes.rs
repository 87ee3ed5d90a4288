//! Reads `[[route]]`, and checks routes against pools and one another.

use std::collections::BTreeMap;

use toml::de::{DeTable, DeValue};

use crate::read::peers::Answering;
use crate::read::pools::{ReadPool, no_pool};
use crate::read::tables::list;
use crate::reader::{ConfigReader, DeclaredTable};
use crate::sections::{
    DEFAULT_POOL, MechanismKind, ROUTES_MAX, RedirectTarget, RouteConfig, RouteHost, Unmatched,
};

/// The routes that may differ in nothing but fields: each is compared with a request one after the other.
const ALIKE_MAX: usize = 64;

/// What routes are checked against.
pub(super) struct BesideRoutes<'a> {
    pub(super) mechanism: MechanismKind,
    pub(super) pools: &'a [ReadPool],
    pub(super) backends: &'a [Answering],
    pub(super) unmatched: &'a Unmatched,
    /// Whether the file has `[compression]`.
    pub(super) compresses: bool,
}

/// The routes.
pub(super) fn read<'a>(
    reader: &mut ConfigReader<'a>,
    root: &'a DeTable<'a>,
    top: &DeclaredTable<'a>,
    beside: &BesideRoutes<'_>,
) -> Option<Vec<RouteConfig>> {
    let sections = if root.get("route").is_some() { list(reader, root, "route")? } else { Vec::new() };
    if let Some(beyond) = sections.get(ROUTES_MAX) {
        let wrong = (format!("there are more than {ROUTES_MAX}"), "use fewer".to_owned());
        reader.wrong(&beyond.path, beyond.span.clone(), wrong);
    }
    if let Some(first) = sections.first()
        && beside.mechanism != MechanismKind::Proxy
    {
        let what = format!("`mechanism = \"{}\"` does not follow routes", beside.mechanism);
        let remedy = "write `mechanism = \"proxy\"`, or remove [[route]]".to_owned();
        reader.wrong(&first.path, first.span.clone(), (what, remedy));
    }
    let mut routes: Vec<RouteConfig> = Vec::new();
    let (mut names, mut alike) = (BTreeMap::new(), BTreeMap::<_, Vec<(Vec<_>, &str)>>::new());
    for section in sections.iter().take(ROUTES_MAX) {
        let Some(route) = RouteConfig::read(reader, section) else { continue };
        if let Some(name) = &route.name
            && let Some(first) = names.insert(name.clone(), &section.path)
        {
            let wrong =
                (format!("is the same as that of {first}"), "give each route a name of its own".to_owned());
            reader.wrong(&section.key("name"), section.span_of("name"), wrong);
        }
        check(reader, section, &route, beside);
        let same = alike.entry((route.host.clone(), route.path.clone())).or_default();
        if let Some((_, first)) = same.iter().find(|(header, _)| *header == route.header) {
            let what = format!("takes the same requests as {first}");
            let remedy = "give it another host, path or header, or remove it".to_owned();
            reader.wrong(&section.path, section.span.clone(), (what, remedy));
        } else if same.len() == ALIKE_MAX {
            let what = format!("there are {ALIKE_MAX} routes for this host and path already");
            reader.wrong(&section.path, section.span.clone(), (what, "use fewer".to_owned()));
        }
        same.push((route.header.clone(), &section.path));
        routes.push(route);
    }
    unmatched(reader, top, beside, &sections, &routes);
    Some(routes)
}

fn check(
    reader: &mut ConfigReader<'_>,
    section: &DeclaredTable<'_>,
    route: &RouteConfig,
    beside: &BesideRoutes<'_>,
) {
    let mut wrong = |key: &str, what: String, remedy: String| {
        reader.wrong(&section.key(key), section.span_of(key), (what, remedy));
    };
    if let Some(pool) = &route.pool
        && beside.pools.iter().all(|other| other.name != *pool)
    {
        let (what, remedy) = no_pool(pool, beside.pools);
        wrong("pool", what, remedy);
    }
    let of_back_ends = ["pool", "replace_prefix", "body", "compression", "request_fields", "response_fields"];
    for (other, is_there, without) in
        [("answer", route.answer.is_some(), &["redirect"][..]), ("redirect", route.redirect.is_some(), &[])]
    {
        for key in without.iter().chain(&of_back_ends).filter(|_| is_there) {
            if section.found(key).is_some() {
                let what = format!("has no effect with `{other}`: no back-end gets the request");
                wrong(key, what, format!("remove it, or `{other}`"));
            }
        }
    }
    if section.found("compression").is_some()
        && route.compression
        && !beside.compresses
        && !beside.pools.iter().any(ReadPool::compresses)
    {
        let remedy = "add [compression], or remove it".to_owned();
        wrong("compression", "has no effect without [compression]".to_owned(), remedy);
    }
    if !matches!(route.host, RouteHost::Exact(_))
        && route.redirect.as_ref().is_some_and(RedirectTarget::prolongs_host)
    {
        let what =
            "puts a name before each host, also before one that has it already, without end".to_owned();
        wrong("redirect", what, "say in `host` for which one the route is".to_owned());
    }
    if route.redirect.is_none() && section.found("redirect_status").is_some() {
        wrong(
            "redirect_status",
            "has no effect without `redirect`".to_owned(),
            "remove it, or add that".to_owned(),
        );
    }
}

/// What takes requests that no route takes is there, and every pool can be reached.
fn unmatched(
    reader: &mut ConfigReader<'_>,
    top: &DeclaredTable<'_>,
    beside: &BesideRoutes<'_>,
    sections: &[DeclaredTable<'_>],
    routes: &[RouteConfig],
) {
    let span = top.span_of("unmatched");
    if let Unmatched::Pool(Some(name)) = beside.unmatched
        && beside.pools.iter().all(|pool| pool.name != *name)
    {
        reader.wrong("unmatched", span.clone(), no_pool(name, beside.pools));
    }
    if sections.is_empty() && *beside.unmatched == Unmatched::NotFound {
        let what = "no request would be answered: there is no [[route]]".to_owned();
        reader.wrong("unmatched", span.clone(), (what, "add one, or remove it".to_owned()));
    }
    let has_discovery = top
        .table
        .is_some_and(|root| matches!(root.get("discovery").map(|v| v.get_ref()), Some(DeValue::Table(_))));
    let is_empty = !has_discovery
        && !beside.backends.is_empty()
        && beside.backends.iter().all(|b| b.config.pool.is_some());
    if !is_empty {
        return;
    }
    let remedy = "name another pool, or remove `pool` from some [[backend]]".to_owned();
    let what =
        format!("every back-end is in another pool than `{DEFAULT_POOL}`, so that nobody answers there");
    if *beside.unmatched == Unmatched::Pool(None) {
        let what = format!("{what} what no route takes");
        let remedy = "write `unmatched = \"404\"` or the name of a pool".to_owned();
        reader.wrong("unmatched", span, (what, remedy));
    }
    let is_passed_on = |r: &RouteConfig| r.pool.is_none() && r.answer.is_none() && r.redirect.is_none();
    for (section, _) in sections.iter().zip(routes).filter(|(_, r)| is_passed_on(r)) {
        reader.wrong(&section.key("pool"), section.span_of("pool"), (what.clone(), remedy.clone()));
    }
}
