//! Front-end and origins in one process, on ports of loopback that the system chooses.

use std::fmt::Write as _;
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use plimsoll_balancer::{Balancer, StartError};
use plimsoll_config::{Config, ConfigErrors};
use plimsoll_origin::synthetic::Synthetic;
use plimsoll_origin::{CpuModel, DiskModel, Origin, OriginConfig, OriginError, OriginHandle, Source};
use tokio::task::JoinHandle;

/// The configuration of a cluster.
#[derive(Debug, Clone)]
pub struct LoopbackConfig {
    /// Number of back-ends, called `b0`, `b1` and so on; 4 by default.
    pub backends: usize,
    /// Policy, by name or alias.
    pub policy: String,
    /// Parameters of the policy, each as it stands in a configuration; none by default.
    pub parameters: Vec<(String, String)>,
    /// Seed of the policy; 1 by default.
    pub seed: u64,
    /// What the origins serve.
    pub source: Source,
    /// Memory cache of each origin in bytes; 32 MiB by default.
    pub cache_bytes: u64,
    /// Replacement policy of the caches; `gds` by default.
    pub cache_policy: String,
    /// The disk that each origin emulates; none by default.
    pub disk: Option<DiskModel>,
    /// The CPU that each origin emulates; none by default.
    pub cpu: Option<CpuModel>,
    /// Threads of the front-end; 1 by default.
    pub workers: usize,
    /// Admission limit, as in a configuration: `"lard"`, `"none"` or a number; `"lard"` by default.
    pub admission: String,
    /// The most requests that wait at the front-end; 4,096 by default.
    pub queue: usize,
    /// Longest wait at the front-end; a minute by default.
    pub queue_timeout: Duration,
    /// Keys of the table `[health]`, in TOML; by default probes by TCP connection.
    pub health: String,
    /// Whether there is an admin API, on a port that the system chooses; there is none by default.
    pub admin: bool,
    /// Further tables of the configuration, in TOML; none by default.
    pub more: String,
}

impl LoopbackConfig {
    /// The defaults, for this policy and these contents of the origins.
    #[must_use]
    pub fn new(policy: &str, contents: Synthetic) -> Self {
        Self {
            backends: 4,
            policy: policy.to_owned(),
            parameters: Vec::new(),
            seed: 1,
            source: Source::synthetic(contents),
            cache_bytes: 32 << 20,
            cache_policy: "gds".to_owned(),
            disk: None,
            cpu: None,
            workers: 1,
            admission: "lard".to_owned(),
            queue: 4096,
            queue_timeout: Duration::from_secs(60),
            health: "probe = \"tcp\"".to_owned(),
            admin: false,
            more: String::new(),
        }
    }

    /// The front-end's configuration for back-ends at these addresses.
    #[must_use]
    pub fn to_toml(&self, backends: &[SocketAddr]) -> String {
        let mut out = String::new();
        let admission = if matches!(self.admission.as_str(), "lard" | "none") {
            format!("\"{}\"", self.admission)
        } else {
            self.admission.clone()
        };
        // Writing to a string does not fail.
        let _ = write!(
            out,
            "workers = {}\n[[listener]]\naddress = \"127.0.0.1:0\"\n[policy]\nname = \"{}\"\nseed = {}\n",
            self.workers, self.policy, self.seed
        );
        for (key, value) in &self.parameters {
            let _ = writeln!(out, "{key} = {value}");
        }
        for (number, address) in backends.iter().enumerate() {
            let _ = write!(out, "[[backend]]\nname = \"b{number}\"\naddress = \"{address}\"\n");
        }
        let _ = write!(
            out,
            "[admission]\nlimit = {admission}\nqueue = {}\nqueue_timeout = \"{}ms\"\n[health]\n{}\n[admin]\n{}\n{}",
            self.queue,
            self.queue_timeout.as_millis(),
            self.health,
            if self.admin { "address = \"127.0.0.1:0\"" } else { "enabled = false" },
            self.more
        );
        out
    }

    fn origin(&self, number: usize) -> OriginConfig {
        OriginConfig {
            cache_policy: self.cache_policy.clone(),
            cache_bytes: self.cache_bytes,
            disk: self.disk,
            cpu: self.cpu,
            name: Some(format!("b{number}")),
            drain_timeout: Duration::from_secs(1),
            ..OriginConfig::new(self.source.clone())
        }
    }
}

/// Why a cluster cannot start or reload.
#[derive(Debug, thiserror::Error)]
pub enum ClusterError {
    /// An origin does not start.
    #[error(transparent)]
    Origin(#[from] OriginError),
    /// The configuration is invalid.
    #[error("the cluster's configuration is not good:\n{0}")]
    Config(String),
    /// The front-end does not start, or does not take over a configuration.
    #[error("the front-end does not start: {0}")]
    Start(#[from] StartError),
}

impl From<ConfigErrors> for ClusterError {
    fn from(errors: ConfigErrors) -> Self {
        Self::Config(errors.render())
    }
}

/// A back-end of a cluster.
struct TestBackend {
    handle: OriginHandle,
    address: SocketAddr,
    /// `None` once it is killed.
    task: Option<JoinHandle<()>>,
}

impl Drop for TestBackend {
    fn drop(&mut self) {
        if let Some(task) = &self.task {
            task.abort();
        }
    }
}

/// A running cluster. Dropping it aborts everything; [`LoopbackCluster::stop`] ends it gracefully.
pub struct LoopbackCluster {
    config: LoopbackConfig,
    members: Vec<TestBackend>,
    /// `None` once the cluster stops.
    balancer: Option<Balancer>,
    address: SocketAddr,
}

impl LoopbackCluster {
    /// Starts origins and front-end; clients are served when this returns. The origins run on the tokio runtime of the
    /// caller, the front-end on threads of its own.
    ///
    /// # Errors
    /// When a resource is unavailable or the configuration is invalid.
    pub async fn start(config: LoopbackConfig) -> Result<Self, ClusterError> {
        let mut members = Vec::new();
        for number in 0..config.backends {
            members.push(start_origin(&config, number, (Ipv4Addr::LOCALHOST, 0).into()).await?);
        }
        let addresses: Vec<SocketAddr> = members.iter().map(|member| member.address).collect();
        let parsed = Config::parse(&config.to_toml(&addresses), "cluster")?;
        let balancer = Balancer::start(parsed)?;
        // The configuration has exactly one listener.
        let address = balancer.addresses().first().copied().unwrap_or((Ipv4Addr::LOCALHOST, 0).into());
        Ok(Self { config, members, balancer: Some(balancer), address })
    }

    /// Where clients are served.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Where the admin API is, if there is one.
    #[must_use]
    pub fn admin_address(&self) -> Option<SocketAddr> {
        self.balancer.as_ref().and_then(Balancer::admin_address)
    }

    /// The front-end; `None` once the cluster stops.
    #[must_use]
    pub fn balancer(&self) -> Option<&Balancer> {
        self.balancer.as_ref()
    }

    /// Where the back-ends are, in order.
    #[must_use]
    pub fn backend_addresses(&self) -> Vec<SocketAddr> {
        self.members.iter().map(|member| member.address).collect()
    }

    /// The origin of back-end `number`: its counts, and pause and resume. `None` if there is no such back-end.
    #[must_use]
    pub fn origin(&self, number: usize) -> Option<&OriginHandle> {
        self.members.get(number).map(|member| &member.handle)
    }

    /// Kills back-end `number`: aborts its listener and all its connections at once.
    pub async fn kill(&mut self, number: usize) {
        if let Some(task) = self.members.get_mut(number).and_then(|member| member.task.take()) {
            task.abort();
            // An aborted task returns an error, as wanted.
            drop(task.await);
        }
    }

    /// Restarts a killed back-end at its address, with an empty cache.
    ///
    /// # Errors
    /// When its address is taken.
    pub async fn restart(&mut self, number: usize) -> Result<(), ClusterError> {
        let Some(address) = self.members.get(number).map(|member| member.address) else {
            return Ok(());
        };
        self.kill(number).await;
        self.members[number] = start_origin(&self.config, number, address).await?;
        Ok(())
    }

    /// Reloads the front-end with a changed configuration; the back-ends stay as they are.
    ///
    /// # Errors
    /// When the configuration is invalid or cannot be applied; the running one stays in force.
    pub fn reload(&self, change: impl FnOnce(&mut LoopbackConfig)) -> Result<(), ClusterError> {
        let mut config = self.config.clone();
        change(&mut config);
        let parsed = Config::parse(&config.to_toml(&self.backend_addresses()), "cluster")?;
        match &self.balancer {
            Some(balancer) => Ok(balancer.reload(parsed)?),
            None => Ok(()),
        }
    }

    /// Stops the front-end, giving requests under way five seconds, and then the origins.
    pub async fn stop(mut self) {
        if let Some(balancer) = self.balancer.take() {
            let stopped = tokio::task::spawn_blocking(move || balancer.stop_within(Duration::from_secs(5)));
            drop(stopped.await);
        }
        for number in 0..self.members.len() {
            self.kill(number).await;
        }
    }
}

impl Drop for LoopbackCluster {
    fn drop(&mut self) {
        if let Some(balancer) = self.balancer.take() {
            balancer.stop_within(Duration::ZERO);
        }
    }
}

async fn start_origin(
    config: &LoopbackConfig,
    number: usize,
    address: SocketAddr,
) -> Result<TestBackend, OriginError> {
    let origin = Origin::bind(config.origin(number), address).await?;
    let handle = origin.handle();
    let address = handle.local_addr();
    let task = tokio::spawn(origin.serve(std::future::pending()));
    Ok(TestBackend { handle, address, task: Some(task) })
}
