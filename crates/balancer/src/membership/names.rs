//! Names of back-ends that are looked up again and again: each of their addresses is a back-end of its own.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use plimsoll_config::{BackendConfig, BackendName, Config, HostPort};
use tokio::sync::Notify;
use tokio::time::Instant;

use super::learned::{LearnedMembers, TakenIn, take_in};
use super::resolve::{in_thread, tls_of};
use super::source::MemberSpec;
use crate::backend::LoadAt;
use crate::host_names::{FoundAddresses, look_up};
use crate::partitioning::PartitionSet;
use crate::shared::FrontEndShared;

/// How long an answer is waited for.
const WAIT: Duration = Duration::from_secs(8);
/// The longest pause before it is looked whether a reload asks for something else.
const LOOK: Duration = Duration::from_millis(500);
/// The pause while a reload is under way.
const RELOAD_PAUSE: Duration = Duration::from_millis(20);
/// The most addresses of one name.
const MOST_ADDRESSES: usize = 1024;

/// A name, and where it led last.
#[derive(Debug)]
struct FollowedName {
    at: HostPort,
    addresses: Vec<SocketAddr>,
    /// When it is looked up next.
    due: Instant,
    failing: bool,
}

impl FollowedName {
    /// Takes an answer. One that leads nowhere leaves the addresses in use that it had.
    fn answered(&mut self, name: &str, found: FoundAddresses) {
        match found {
            Ok(mut addresses) => {
                addresses.sort_unstable();
                addresses.dedup();
                addresses.truncate(MOST_ADDRESSES);
                (self.addresses, self.failing) = (addresses, false);
            }
            Err(error) => {
                if !std::mem::replace(&mut self.failing, true) {
                    let many = match self.addresses.len() {
                        1 => "the address that it had stays".to_owned(),
                        many => format!("the {many} addresses that it had stay"),
                    };
                    tracing::warn!(backend = name, "{error}; {many} in use");
                }
            }
        }
    }
}

/// The names of a configuration that are followed.
#[derive(Debug, Default)]
struct FollowedNames(BTreeMap<BackendName, FollowedName>);

fn followed(config: &Config) -> impl Iterator<Item = (&BackendConfig, Duration)> {
    config.backends.iter().filter_map(|b| Some((b, b.resolve?)))
}

impl FollowedNames {
    /// Those of this configuration, with what is known of them.
    fn update(&mut self, config: &Config, now: Instant) {
        let is_there =
            |name: &str, at: &HostPort| followed(config).any(|(b, _)| *b.name == *name && b.at == *at);
        self.0.retain(|name, known| is_there(name, &known.at));
        for (b, _) in followed(config) {
            let fresh = || FollowedName { at: b.at.clone(), addresses: Vec::new(), due: now, failing: false };
            self.0.entry(Arc::clone(&b.name)).or_insert_with(fresh);
        }
    }

    fn due(&self, now: Instant) -> Vec<HostPort> {
        self.0.values().filter(|known| known.due <= now).map(|known| known.at.clone()).collect()
    }

    fn answered(&mut self, config: &Config, found: &BTreeMap<HostPort, FoundAddresses>, now: Instant) {
        for (b, interval) in followed(config) {
            let Some(known) = self.0.get_mut(&b.name) else { continue };
            let Some(found) = found.get(&known.at) else { continue };
            known.answered(&b.name, found.clone());
            known.due = now + interval;
        }
    }

    /// The next time at which there is something to do.
    fn next(&self, now: Instant) -> Instant {
        self.0.values().map(|known| known.due).min().unwrap_or(now + LOOK).clamp(now, now + LOOK)
    }

    fn members(&self, config: &Config) -> Vec<MemberSpec> {
        let of = |b: &BackendConfig| -> Vec<MemberSpec> {
            let addresses = self.0.get(&b.name).map_or(&[][..], |known| &known.addresses);
            addresses.iter().map(|&address| member_of(config, b, address)).collect()
        };
        followed(config).flat_map(|(b, _)| of(b)).collect()
    }
}

fn member_of(config: &Config, b: &BackendConfig, address: SocketAddr) -> MemberSpec {
    MemberSpec {
        name: format!("{}@{address}", b.name).into(),
        weight: b.weight,
        address: Ok(address),
        tls: tls_of(config, b),
        agent: None,
        agent_at: None,
        // The server behind the address knows itself by the name.
        authority: b.address(),
        load_at: LoadAt::Port(u16::try_from(b.load_port).unwrap_or(u16::MAX)),
        partitions: PartitionSet::held(&b.partitions),
        max_connections: b.max_connections,
    }
}

/// Looks names up again and again, has their addresses as back-ends, and `changed` told of each change.
pub(crate) async fn follow_names(shared: Arc<FrontEndShared>, changed: Arc<Notify>) {
    let (mut names, mut learned) = (FollowedNames::default(), LearnedMembers::default());
    loop {
        let config = shared.config.load_full();
        names.update(&config, Instant::now());
        let due = names.due(Instant::now());
        if !due.is_empty() {
            // Without a thread nothing was looked up, and it is tried again.
            let found = in_thread(move || look_up(due.into_iter(), WAIT)).await.unwrap_or_default();
            names.answered(&config, &found, Instant::now());
        }
        match take_in(&shared, &mut learned, &config, names.members(&config)) {
            TakenIn::Later => {
                tokio::time::sleep(RELOAD_PAUSE).await;
                continue;
            }
            TakenIn::Changed => changed.notify_one(),
            TakenIn::Same => {}
        }
        let now = Instant::now();
        // A name that could not be looked up at all is not asked for without a pause.
        tokio::time::sleep_until(names.next(now).max(now + RELOAD_PAUSE)).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host_names::UnresolvedHost;

    fn config(resolve: &str) -> Config {
        let text = format!(
            "[[listener]]\naddress = \"127.0.0.1:0\"\n[[backend]]\naddress = \"10.0.0.1:80\"\n\
             [[backend]]\nname = \"web\"\naddress = \"web.internal:80\"\nweight = 2\nresolve = \"{resolve}\"\n"
        );
        Config::parse(&text, "test.toml").unwrap()
    }

    fn found(last: &[u8]) -> BTreeMap<HostPort, FoundAddresses> {
        let at = HostPort { host: "web.internal".to_owned(), port: 80 };
        let addresses = last.iter().map(|&n| SocketAddr::from(([10, 0, 1, n], 80))).collect();
        [(at, Ok(addresses))].into()
    }

    fn shown(names: &FollowedNames, config: &Config) -> Vec<String> {
        names.members(config).iter().map(|m| m.name.to_string()).collect()
    }

    #[test]
    fn each_address_is_a_back_end_until_the_name_leads_there_no_more() {
        let (config, now) = (config("5s"), Instant::now());
        let mut names = FollowedNames::default();
        names.update(&config, now);
        assert_eq!((names.due(now).len(), shown(&names, &config).len()), (1, 0));
        names.answered(&config, &found(&[2, 1, 2]), now);
        assert_eq!(shown(&names, &config), ["web@10.0.1.1:80", "web@10.0.1.2:80"]);
        let member = &names.members(&config)[0];
        assert_eq!((member.weight.as_f64(), &*member.authority), (2.0, "web.internal:80"));
        assert!(names.due(now + Duration::from_secs(4)).is_empty());
        assert_eq!(names.due(now + Duration::from_secs(5)).len(), 1);
        names.answered(&config, &found(&[3]), now);
        assert_eq!(shown(&names, &config), ["web@10.0.1.3:80"]);
        let lost = found(&[]).into_keys().map(|at| {
            let error = UnresolvedHost { host: at.host.clone(), error: "no answer".to_owned() };
            (at, Err(error))
        });
        names.answered(&config, &lost.collect(), now);
        assert_eq!(shown(&names, &config), ["web@10.0.1.3:80"], "they stay while the name server is away");
    }

    #[test]
    fn a_reload_ends_and_begins_it() {
        let now = Instant::now();
        let mut names = FollowedNames::default();
        let (followed, once) = (config("5s"), config("once"));
        names.update(&followed, now);
        names.answered(&followed, &found(&[1]), now);
        names.update(&once, now);
        assert_eq!((names.0.len(), shown(&names, &once).len()), (0, 0));
        names.update(&followed, now);
        assert_eq!(names.due(now).len(), 1);
    }
}
