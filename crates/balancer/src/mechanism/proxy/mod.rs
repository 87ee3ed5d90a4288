//! The mechanism `proxy`: request and response pass through the front-end.
//!
//! `pass` carries one request to a back-end and the response back; `upload` and `relay` are the two directions of it, `tunnel` is what
//! follows a change of protocol, `compress` what is compressed on the way;
//! `pool` keeps connections to back-ends.

mod acknowledging;
mod client_wait;
mod coded_content;
mod coder;
mod compress;
mod freed;
mod idle;
mod pass;
mod pool;
mod read_ahead;
mod relay;
mod relay_failed;
mod request_rest;
mod told;
mod tunnel;
mod upload;

use std::convert::Infallible;
use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Instant;

use plimsoll_config::{Config, ProxyProtocol};
use plimsoll_datapath::privileges::RunUser;

use super::carry::{Answered, Carried, ClientRequest, Failure, Mechanism};
use crate::accepted::Accepted;
use crate::backend::Backend;
use crate::backend_pool::BackendPool;
use crate::http::Framing;
use crate::load_information::HeaderLoads;
use crate::net::halves::{BackendIo, ClientIo};
use crate::net::to_backend::ToBackend;
use crate::net::unless_gone::unless_gone;
use crate::sessions;
use crate::trial;
use crate::worker::Worker;
use compress::Compressors;
use pass::Exchange;
use pool::{BackendConnection, KeptFor, NoConnection, Pool};

/// A request that is lost so soon, in milliseconds, came to a connection that was closed already.
const SOON_LOST_MS: u64 = 100;

/// The mechanism of one worker, with connections of this type to back-ends.
pub(crate) struct Proxy<B: BackendIo = ToBackend> {
    pool: Pool<B>,
    compressors: Rc<Compressors>,
}

impl<B: BackendIo + 'static> Mechanism for Proxy<B> {
    type System = ();
    type Parcel = Infallible;

    /// Always in use: it carries what other mechanisms decline.
    fn start(_: &Config, _: Option<&RunUser>) -> Result<Option<Arc<()>>, String> {
        Ok(Some(Arc::new(())))
    }

    fn new(_: &Arc<()>, worker: &Rc<Worker>) -> Rc<Self> {
        Rc::new(Self {
            pool: Pool::new(Rc::clone(&worker.deadlines)),
            compressors: Compressors::new(Arc::clone(&worker.shared), worker.index),
        })
    }

    async fn carry<C: ClientIo>(&self, request: &mut ClientRequest<'_, C>) -> Carried<Infallible> {
        match self.pass(request).await {
            Ok(answered) => Carried::Answered(answered),
            Err(failure) => Carried::Failed(failure),
        }
    }

    fn take<C: ClientIo>(self: &Rc<Self>, _: &Rc<Worker>, _: C, _: &Rc<Accepted>, parcel: Infallible) {
        match parcel {}
    }

    fn client_ended(&self, accepted: &Accepted) {
        self.pool.client_ended(accepted);
    }

    fn housekeeping(self: &Rc<Self>, worker: &Rc<Worker>) {
        self.pool.sweep(worker.shared.config.load().timeouts.backend_idle);
        self.compressors.sweep();
    }
}

impl<B: BackendIo> Proxy<B> {
    async fn pass<C: ClientIo>(&self, request: &mut ClientRequest<'_, C>) -> Result<Answered, Failure> {
        let Some(backend) = request.account.backend.clone() else { return Err(Failure::NoPlace) };
        let before = backend.turns();
        // One in doubt may be busy with this very request, and so may the next one.
        let movable = request.repeatable && request.more && request.account.attempts == 1;
        let lapses = movable.then(|| backend.lapses());
        let (mut connection, perhaps_stale) = self.connect(request, &backend).await?;
        // On its last try it may have waited for long, and the back-end gone and come back meanwhile.
        let before = if request.more || before % 2 == 1 { before } else { backend.turns() };
        if connection.backend.went_down_since(before) && request.more {
            // It went down while a connection was waited for.
            return Err(Failure::NotSent);
        }
        let on_trial = request.account.is_on_trial();
        let first_byte = trial::first_byte(request.config.timeouts.first_byte, on_trial, &backend);
        let mut response = request.worker.response_buffer();
        let secure = request.accepted.way.secure;
        let sticky = request.config.sticky.as_ref();
        let cookie = sticky.and_then(|sticky| {
            let table = |pool: &Arc<BackendPool>| pool.session_table(sticky);
            let table = request.worker.shared.in_pool(request.head.pool, table).unwrap_or_default();
            sessions::field((&backend, &table), request.account.session, (sticky, secure))
        });
        let scratch = &mut *request.scratch;
        let (stalling, trial) = request.account.stalling_and_trial();
        let mut exchange = Exchange {
            client: &mut *request.stream,
            input: &mut scratch.input,
            deadline: request.deadline,
            config: request.config,
            head: request.head,
            head_bytes: &scratch.head,
            framing: request.framing,
            out: &mut scratch.out,
            response: &mut response,
            worker: request.worker,
            accepted: request.accepted,
            keep: request.keep,
            stalling,
            trial,
            first_byte,
            before: (before, lapses),
            loads: HeaderLoads::of(&request.worker.shared, &backend),
            more: cookie.as_deref().unwrap_or_default(),
            compressors: &self.compressors,
        };
        *request.answering = true;
        let sent_ms = request.deadline.now_ms();
        let passed = exchange.pass(&mut connection).await;
        *request.answering = false;
        let leaves_open = &connection.backend.leaves_open;
        match &passed {
            Ok(answered) if !connection.is_new || answered.head.says_kept => leaves_open.said(),
            // When it was closed nobody knows; perhaps with the answer before. What is lost later was begun with.
            Err(Failure::Lost)
                if !connection.is_new && request.deadline.now_ms() - sent_ms <= SOON_LOST_MS =>
            {
                leaves_open.saw_closed(connection.idle_ms);
            }
            _ => {}
        }
        let answered = passed.map_err(|failure| match failure {
            Failure::Lost if perhaps_stale => Failure::Stale,
            // Nothing of its body has been used up.
            Failure::NotProcessed if request.framing == Framing::None && request.more => Failure::NotSent,
            Failure::NotProcessed => Failure::Lost,
            failure => failure,
        })?;
        // One that was told a client that has gone is for nobody.
        let is_left = connection.client.is_some() && request.accepted.over.get();
        if answered.keep_backend && !is_left {
            self.pool.put(connection);
        }
        Ok(answered)
    }

    /// A connection to the back-end, and whether it may have been closed meanwhile.
    async fn connect<C: ClientIo>(
        &self,
        request: &mut ClientRequest<'_, C>,
        backend: &Arc<Backend>,
    ) -> Result<(BackendConnection<B>, bool), Failure> {
        let care = match (request.repeatable, request.account.attempts) {
            (false, _) => KeptFor::Once,
            (true, ..=1) => KeptFor::Repeatable,
            (true, _) => KeptFor::Careful,
        };
        // On trial, a kept connection that was closed meanwhile would say nothing of the back-end as it is now.
        let on_trial = request.account.is_on_trial();
        let client = (backend.proxy_protocol != ProxyProtocol::None).then(|| request.accepted.ends());
        let client = client.as_ref();
        if !on_trial && let Some(connection) = self.pool.take(backend, client, care) {
            return Ok((connection, care == KeptFor::Repeatable));
        }
        let wait = trial::wait(request.config.timeouts.connect, on_trial);
        // It answers others, and its queue of connections is full: where this is the last try, the request waits for a place there.
        let waits = !request.more && backend.tls.is_none();
        let mut since = waits.then(|| (Instant::now(), backend.answers()));
        let kept_for = (!on_trial).then_some(care);
        let patience = wait + request.config.admission.queue_timeout;
        let mut connect = async || {
            let connecting = self.pool.connect(backend, client, wait, kept_for);
            if backend.http2 {
                // Others wait for the same connection, and have only this request to open it.
                return Ok(connecting.await);
            }
            unless_gone(&mut *request.stream, connecting).await.ok_or(Failure::ClientGone)
        };
        let mut opened = connect().await?;
        while let Some((asked, answers)) = &mut since
            && is_full(&opened)
            && asked.elapsed() < patience
            && backend.answers() != *answers
        {
            *answers = backend.answers();
            if let Some(connection) = self.pool.take(backend, client, care) {
                return Ok((connection, care == KeptFor::Repeatable));
            }
            opened = connect().await?;
        }
        let opened = opened.map_err(|why| match why {
            NoConnection::Limit => Failure::NoPlace,
            NoConnection::Failed(error) => Failure::Unreachable(error),
        })?;
        let is_kept = opened.is_kept();
        if !is_kept && opened.stream.is_new() {
            request.worker.connected(backend);
        }
        Ok((opened, is_kept && care == KeptFor::Repeatable))
    }
}

/// Whether a back-end lets no connection in, for now: the system says nothing else where its queue is full.
fn is_full<B>(opened: &Result<BackendConnection<B>, NoConnection>) -> bool {
    matches!(opened, Err(NoConnection::Failed(error)) if error.kind() == io::ErrorKind::TimedOut)
}
