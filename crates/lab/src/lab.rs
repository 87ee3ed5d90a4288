//! Builds a lab, and operates on it as a whole.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::process::Command;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::cable::Cable;
use crate::commands;
use crate::conditions::Conditions;
use crate::config::{LabConfig, addresses, virtual_v4, virtual_v6};
use crate::error::LabError;
use crate::holder::Holder;
use crate::node::Node;
use crate::node_handle::{NodeHandle, enter};
use crate::privileges::check_privileges;
use crate::rules::{COUNTING, Rules, check_matching};
use crate::traffic::{Traffic, parse};

/// A running lab. Dropping it tears it down; see the [crate's description](crate).
#[derive(Debug)]
pub struct Lab {
    config: LabConfig,
    nodes: BTreeMap<Node, NodeMember>,
    state: Mutex<SwitchState>,
}

#[derive(Debug)]
struct NodeMember {
    holder: Holder,
    addresses: Vec<(Ipv4Addr, Ipv6Addr)>,
}

/// What the switch does besides forwarding frames.
#[derive(Debug, Default)]
pub(crate) struct SwitchState {
    rules: Rules,
    /// Those that have had conditions.
    pub(crate) cables: BTreeMap<Node, Cable>,
}

impl Lab {
    /// Builds a lab. Takes some tenths of a second.
    ///
    /// # Errors
    /// When the configuration is invalid, this process is not root, a program is missing, or the kernel lacks
    /// a feature. Nothing of the lab is left then.
    pub fn build(config: &LabConfig) -> Result<Self, LabError> {
        config.check()?;
        check_privileges()?;
        ["ip", "nsenter", "unshare"].into_iter().try_for_each(commands::need)?;
        let mut nodes = BTreeMap::new();
        for node in config.nodes() {
            let remove_at_end = config.remove_at_end.as_deref().filter(|_| node == Node::Switch);
            let holder = Holder::start(remove_at_end)?;
            nodes.insert(node, NodeMember { holder, addresses: addresses(node, config.clients) });
        }
        let mut lab = Self { config: config.clone(), nodes, state: Mutex::default() };
        lab.nodes.values_mut().try_for_each(|member| member.holder.wait_until_ready())?;
        for handle in lab.nodes() {
            prepare_ipv6(handle)?;
        }
        lab.connect()?;
        lab.set_up()?;
        Ok(lab)
    }

    /// Its configuration.
    #[must_use]
    pub fn config(&self) -> &LabConfig {
        &self.config
    }

    /// One node.
    ///
    /// # Errors
    /// When there is no such back-end.
    pub fn node(&self, node: Node) -> Result<NodeHandle<'_>, LabError> {
        self.nodes.get(&node).map(|member| self.handle(node, member)).ok_or_else(|| {
            LabError::Invalid(format!(
                "no node {node}: this lab has {} back-ends, from b0",
                self.config.backends
            ))
        })
    }

    /// All nodes: switch, front-end, client, back-ends.
    pub fn nodes(&self) -> impl Iterator<Item = NodeHandle<'_>> {
        self.nodes.iter().map(|(node, member)| self.handle(*node, member))
    }

    fn handle<'a>(&'a self, node: Node, member: &'a NodeMember) -> NodeHandle<'a> {
        NodeHandle {
            node,
            pid: member.holder.pid(),
            addresses: &member.addresses,
            cpus: self.config.cpus.as_ref(),
        }
    }

    /// The IPv4 address that clients connect to, the front-end's second address. It differs from the
    /// front-end's own, because an agent also adds it to the back-end, which then could not reach a front-end
    /// at that address.
    #[must_use]
    pub fn virtual_address(&self) -> Ipv4Addr {
        virtual_v4()
    }

    /// The IPv6 address that clients connect to; see [`Lab::virtual_address`].
    #[must_use]
    pub fn virtual_address_v6(&self) -> Ipv6Addr {
        virtual_v6()
    }

    /// The node, if it has a link to the switch.
    pub(crate) fn linked(&self, node: Node) -> Result<Node, LabError> {
        if node == Node::Switch {
            return Err(LabError::Invalid("the switch has no link to itself".to_owned()));
        }
        self.node(node).map(|_| node)
    }

    /// Drops all frames from `from` to `to` from now on. Needs `nft`.
    ///
    /// # Errors
    /// When one of them is not a node with a link, or `nft` fails.
    pub fn block(&self, from: Node, to: Node) -> Result<(), LabError> {
        let pair = (self.linked(from)?, self.linked(to)?);
        self.change_rules(|rules| rules.blocked.insert(pair))
    }

    /// Ends what [`Lab::block`] began.
    ///
    /// # Errors
    /// When `nft` fails.
    pub fn unblock(&self, from: Node, to: Node) -> Result<(), LabError> {
        self.change_rules(|rules| rules.blocked.remove(&(from, to)))
    }

    /// Makes the switch drop frames that match this `nft` expression, for example `oifname "b1" tcp flags &
    /// fin == fin`. Interfaces have the names of nodes.
    ///
    /// # Errors
    /// When `nft` rejects the expression.
    pub fn drop_frames(&self, matching: &str) -> Result<(), LabError> {
        check_matching(matching)?;
        let done = self.change_rules(|rules| {
            rules.matching.push(matching.to_owned());
            true
        });
        if done.is_err() {
            // A rejected expression would make all later changes fail.
            self.lock().rules.matching.pop();
        }
        done
    }

    /// Ends what [`Lab::drop_frames`] and [`Lab::block`] began; conditions of links stay.
    ///
    /// # Errors
    /// When `nft` fails.
    pub fn pass_frames(&self) -> Result<(), LabError> {
        self.change_rules(|rules| {
            rules.matching.clear();
            rules.blocked.clear();
            true
        })
    }

    /// Starts counting, from zero, what each node sends to each other one, without multicast. Needs `nft`.
    ///
    /// # Errors
    /// When `nft` fails.
    pub fn count_traffic(&self) -> Result<(), LabError> {
        commands::need("nft")?;
        commands::run(self.switch_command("nft").args(["-f", "-"]), COUNTING).map(drop)
    }

    /// The counts since [`Lab::count_traffic`], without pairs that had no traffic.
    ///
    /// # Errors
    /// When counting was not started.
    pub fn traffic(&self) -> Result<Vec<Traffic>, LabError> {
        let printed = self.in_switch("nft", &["list", "set", "bridge", "counts", "pairs"])?;
        Ok(parse(&printed))
    }

    /// Runs a program in the switch's node and returns its output.
    pub(crate) fn in_switch(&self, program: &str, arguments: &[&str]) -> Result<String, LabError> {
        commands::need(program)?;
        commands::run(self.switch_command(program).args(arguments), "")
    }

    fn switch_command(&self, program: &str) -> Command {
        // There is always a switch.
        enter(self.nodes.get(&Node::Switch).map_or(0, |member| member.holder.pid()), program)
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, SwitchState> {
        // Nothing panics while holding it.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes which frames are dropped; `change` returns whether it changed anything.
    fn change_rules(&self, change: impl FnOnce(&mut Rules) -> bool) -> Result<(), LabError> {
        let mut state = self.lock();
        if !change(&mut state.rules) {
            return Ok(());
        }
        commands::need("nft")?;
        commands::run(self.switch_command("nft").args(["-f", "-"]), &state.rules.script()).map(drop)
    }

    /// Makes the bridge and the cables.
    fn connect(&self) -> Result<(), LabError> {
        let mut script =
            String::from("link add br0 type bridge stp_state 0 mcast_snooping 0\nlink set br0 up\n");
        for handle in self.nodes().filter(|handle| handle.node() != Node::Switch) {
            let (node, pid) = (handle.node(), handle.pid());
            // Writing to a string does not fail.
            let _ = write!(
                script,
                "link add {node} type veth peer name eth0 netns {pid}\nlink set {node} master br0\nlink set {node} up\n"
            );
        }
        commands::run(self.switch_command("ip").args(["-batch", "-"]), &script).map(drop)
    }

    /// Sets the nodes' addresses and the links' conditions.
    fn set_up(&self) -> Result<(), LabError> {
        for handle in self.nodes() {
            let mut command = enter(handle.pid(), "ip");
            commands::run(command.args(["-batch", "-"]), &address_script(handle))?;
            if handle.node() != Node::Switch && self.config.fill_checksums {
                commands::need("ethtool")?;
                commands::run(enter(handle.pid(), "ethtool").args(["-K", "eth0", "tx", "off"]), "")?;
            }
            if let Some(plan) = &self.config.cpus {
                commands::need("taskset")?;
                plan.steer(handle.node(), &handle.root())?;
            }
        }
        if self.config.links != Conditions::default() {
            for handle in self.nodes().filter(|handle| handle.node() != Node::Switch) {
                self.link(handle.node())?.set(&self.config.links)?;
            }
        }
        Ok(())
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        // They keep interfaces alive, and so the switch's namespace.
        self.lock().cables.clear();
        // Release all at once, then wait for each.
        self.nodes.values_mut().for_each(|member| member.holder.release());
    }
}

/// Makes IPv6 addresses usable as soon as they are added. Must precede the creation of interfaces, which
/// inherit the setting.
fn prepare_ipv6(handle: NodeHandle<'_>) -> Result<(), LabError> {
    let settings =
        [("disable_ipv6", "0"), ("accept_dad", "0"), ("accept_ra", "0"), ("router_solicitations", "0")];
    let write = || {
        for place in ["all", "default"] {
            for (key, value) in settings {
                let file = format!("/proc/sys/net/ipv6/conf/{place}/{key}");
                fs::write(&file, value).map_err(|error| LabError::Unsupported {
                    what: "IPv6 in a lab".to_owned(),
                    why: format!("{file} cannot be written: {error}"),
                })?;
            }
        }
        Ok(())
    };
    handle.run(write)?
}

fn address_script(handle: NodeHandle<'_>) -> String {
    let interface = if handle.node() == Node::Switch { "br0" } else { "eth0" };
    let mut out = String::from("link set lo up\n");
    // Writing to a string does not fail.
    for (v4, v6) in handle.addresses() {
        let _ =
            write!(out, "address add {v4}/24 dev {interface}\naddress add {v6}/64 dev {interface} nodad\n");
    }
    if handle.node() == Node::FrontEnd {
        // Deprecated and without a network prefix, so that the node does not choose it as source address.
        let _ = write!(
            out,
            "address add {}/32 dev eth0\naddress add {}/128 dev eth0 nodad preferred_lft 0\n",
            virtual_v4(),
            virtual_v6()
        );
    }
    let _ = writeln!(out, "link set {interface} up");
    out
}
