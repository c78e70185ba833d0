import { createHash } from 'node:crypto'
import type { Sqlite } from '../../src/sidecar/store/sqlite/open.ts'
import { Agenda } from './agenda.ts'
import { Application } from './application.ts'
import { Chance } from './chance.ts'
import { emptyDisk, release, newDatabase, PAGES } from './database.ts'
import type { Plan } from './faults.ts'
import { Life } from './life.ts'
import { listeningLog } from './listening-log.ts'
import { Network } from './network.ts'
import { Operator } from './operator.ts'
import { secretIn, TOKEN } from './oracle/secrets.ts'
import { Watch } from './oracle/watch.ts'
import { SharedStore } from './replicas.ts'
import type { Scenario } from './scenario.ts'
import { Agent } from './service/agent.ts'
import { Api } from './service/api.ts'
import { drawDetails } from './service/details.ts'
import { ServiceHost } from './service/host.ts'
import { ServiceState } from './service/state.ts'
import { Slots } from './service/slots.ts'
import { EventStream } from './service/stream.ts'
import { Webhooks } from './service/webhooks.ts'
import { startSidecar, type Running } from './sidecar.ts'
import { Sites } from './sites.ts'
import { Trace } from './trace.ts'

const START = 1_763_701_200_000
/** Seconds for which an operator looks whether a handler is paused. */
const PATIENCE = 180
/** So long after a second process was started the first one has ended, milliseconds. */
const FENCED = 5000
/** What a stop may take of what is under way, milliseconds. */
const GRACE = 10_000

/** Where a process runs, one after the other. */
export interface Post {
  life: Life | null
  running: Running | null
  /** Its wall clock less that of the house, milliseconds. */
  readonly skew: number
  /** True time: it is not started again before. */
  downUntil: number
}

/** A process whose leases were taken ends so soon, milliseconds. */
const EXITS = [1, 50, 1500]

/** One seed's world: a service, an application, a network, and one sidecar after the other on one database. */
export class Simulation {
  readonly seed: number
  readonly scenario: Scenario
  readonly agenda: Agenda
  readonly trace = new Trace()
  readonly sites: Sites
  readonly db: Sqlite
  readonly wall = { offset: 0 }
  readonly state: ServiceState
  readonly agent: Agent
  readonly host: ServiceHost
  readonly events: EventStream
  readonly slots: Slots
  readonly webhooks: Webhooks
  readonly watch: Watch
  readonly app: Application
  readonly network: Network
  readonly operator: Operator
  /** Every life so far. */
  readonly all: Life[] = []
  /** One, or those of several processes. */
  readonly posts: Post[]
  /** null: one process has the store alone. */
  readonly shared: SharedStore | null
  lives = 0
  crashes = 0
  /** True time of the first start: what rested before is taken as known. */
  lookedFrom: number | null = null
  /** True time when that look was through. */
  lookedAt: number | null = null
  /** How much is pending for handlers and for the service. */
  readonly underWay
  /** True time at which the first copy of a webhook's delivery came, by its signature. */
  readonly #arrived = new Map<string, number>()
  readonly #chance: Chance
  /** The process that a second one was started beside. */
  #former: { life: Life; running: Running } | null = null
  readonly #routes: Chance
  readonly #draws: Chance

  constructor(seed: number, scenario: Scenario, plan: Plan) {
    this.seed = seed
    this.scenario = scenario
    this.#chance = new Chance(seed, 'world')
    this.#routes = new Chance(seed, 'routes')
    this.agenda = new Agenda(START, new Chance(seed, 'ties'))
    this.sites = new Sites(this.agenda, this.trace, plan)
    this.sites.onCrash = (life) => this.crash(life)
    const { replicas } = scenario
    this.posts = (replicas?.skews ?? [0]).map((skew) => ({ life: null, running: null, skew, downUntil: 0 }))
    this.#draws = new Chance(seed, 'posts')
    const { agenda, sites, trace } = this
    const chance = new Chance(seed, 'service')
    const retention = scenario.upkeep?.retention ?? null
    this.db = newDatabase(new Chance(seed, 'pages').pick(PAGES), retention !== null)
    this.underWay = this.db
      .prepare<[], number>(
        `SELECT (SELECT count(*) FROM lanes WHERE pending > 0)
           + (SELECT count(*) FROM calls WHERE ended_at IS NULL)`,
      )
      .pluck()
    this.shared =
      replicas === undefined
        ? null
        : new SharedStore({
            db: this.db,
            agenda,
            chance: new Chance(seed, 'shared store'),
            onBroken: (message) => this.trace.broken('I18', message),
            onTaken: (isTheirs) => this.watch.attempts.taken(isTheirs),
          })
    const details = drawDetails(new Chance(seed, 'details'), scenario.absent)
    this.state = new ServiceState(agenda, details, scenario.skew)
    this.agent = new Agent(agenda, chance, this.state)
    this.webhooks = new Webhooks(agenda, chance, sites, this.state)
    const one = new Chance(seed, 'slots').is(0.15)
    this.slots = new Slots({ agenda, sites, trace, most: one ? 1 : Infinity })
    const replayMax = chance.pick([4, 20, 50_000])
    this.events = new EventStream({ agenda, state: this.state, sites, slots: this.slots, replayMax })
    const api = new Api(this.state, this.agent, this.webhooks)
    const isShared = this.shared !== null
    this.host = new ServiceHost({
      agenda,
      chance,
      sites,
      state: this.state,
      api,
      slots: this.slots,
      isShared,
    })
    const ordered = new Set(scenario.handlers.filter((one) => one.ordered).map(({ name }) => name))
    const skewed = scenario.skew !== 0
    this.watch = new Watch(
      { agenda, trace, sites, db: this.db, state: this.state, retention, skewed, shared: this.shared },
      ordered,
    )
    this.agent.onLingered = (call) => this.watch.lingered(call)
    this.watch.scoped = (scenario.scope ?? null) !== null
    const takes = scenario.handlerTakes ?? 0
    this.app = new Application({ agenda, chance: new Chance(seed, 'app'), sites, watch: this.watch, takes })
    this.network = new Network({
      agenda,
      chance: new Chance(seed, 'network'),
      sites,
      host: this.host,
      events: this.events,
      app: this.app,
      watch: this.watch,
    })
    this.webhooks.carry = (parcel, answer) => this.#carry(parcel, answer)
    this.app.onGone = (handler) => this.resume(handler)
    this.app.onDeferred = (callId) => this.#answerLater(callId, this.#chance.pick([50, 1500, 4000]))
    for (const session of scenario.sessions) {
      agenda.in(session.at - this.#earliest(), () => this.agent.create(session))
    }
    for (const [index, post] of this.posts.entries())
      agenda.in(-this.#earliest() + (index === 0 ? 0 : this.#draws.int(0, 3000)), () => this.start(post))
    this.#bringStrangers()
    this.operator = new Operator(this, new Chance(seed, 'operator'))
    if (scenario.secondAt !== undefined) agenda.in(scenario.secondAt - this.#earliest(), () => this.#second())
    for (const act of scenario.upkeep?.acts ?? [])
      agenda.in(act.at - this.#earliest(), () => this.operator.act(act.do))
  }

  /** Sessions of other sidecars, and those that change hands. */
  #bringStrangers(): void {
    const { agenda, agent, scenario } = this
    for (const { plan, first, patches } of scenario.scope?.strangers ?? []) {
      agenda.in(plan.at - this.#earliest(), () => {
        const session = agent.create(plan, first)
        for (const { at, metadata } of patches) agenda.in(at, () => agent.patch(session, { metadata }))
      })
    }
    const { restartAt = null } = scenario.scope ?? {}
    if (restartAt !== null) agenda.in(restartAt - this.#earliest(), () => this.restart())
  }

  /** Milliseconds after the sidecar's first start; sessions may be older. */
  #earliest(): number {
    const strangers = this.scenario.scope?.strangers ?? []
    return Math.min(0, ...this.scenario.sessions.map(({ at }) => at), ...strangers.map(({ plan }) => plan.at))
  }

  /** True time of the sidecar's first start. */
  get begin(): number {
    return START - this.#earliest()
  }

  /** The process that people reach; of several the first that works. */
  get life(): Life | null {
    return this.#reached.life
  }

  get running(): Running | null {
    return this.#reached.running
  }

  get #reached(): Post {
    const [first] = this.posts
    const post = this.posts.find(({ life }) => life?.started === true && !life.stopping) ?? first
    if (post === undefined) throw new Error('there is no place for a process')
    return post
  }

  /** Any of several. */
  anyPost(): Post {
    return this.posts.length === 1 ? this.#reached : this.#draws.pick(this.posts)
  }

  start(post: Post = this.#reached): void {
    const { agenda, trace, shared } = this
    this.slots.forget()
    const { skew } = post
    const life = new Life(++this.lives, agenda.now, {
      wall: agenda.now + this.wall.offset + skew,
      isReplica: shared !== null,
    })
    if (shared !== null) life.sites = this.sites.at(life)
    this.all.push(life)
    const cut = shared === null ? this.watch.attempts.begun() : []
    post.life = life
    trace.note(agenda.now, '== start', String(life.number))
    const log = listeningLog(trace, () => agenda.now)
    const onFirstStart = (): void => {
      this.lookedFrom ??= life.startedAt
    }
    const onFirstLook = (): void => {
      this.lookedFrom ??= life.startedAt
      this.lookedAt ??= agenda.now
    }
    const { seed, scenario, network, app, watch, db } = this
    const sites = life.sites ?? this.sites
    const house = this.wall
    const wall =
      skew === 0
        ? house
        : {
            get offset(): number {
              return house.offset + skew
            },
          }
    const onLost = (former: Life): void => this.#lost(former)
    const parts = {
      seed,
      scenario,
      agenda,
      sites,
      wall,
      network,
      app,
      watch,
      db,
      shared,
      log,
      onFirstStart,
      onFirstLook,
      onLost,
    }
    const onLed = (): void => this.slots.forget()
    try {
      const running = startSidecar(life, { ...parts, onLed, token: this.host.token })
      post.running = running
      this.#replace()
      this.watch.attempts.cut(cut)
      running.started.then(
        () => (life.started = true),
        (error: unknown) => this.#startFailed(life, error),
      )
    } catch (error) {
      this.#startFailed(life, error)
    }
  }

  #startFailed(life: Life, error: unknown): void {
    const { trace, agenda } = this
    trace.note(agenda.now, '== start failed', String(error))
    if (secretIn(String(error)) !== undefined) trace.broken('I13', `the start failed: ${String(error)}`)
    // Its supervisor tries again.
    if (life.alive) this.#end(life, 2000)
  }

  /** null: whichever. */
  crash(given: Life | null = null): void {
    const life = given ?? this.anyPost().life
    if (life === null || !life.alive) return
    this.crashes++
    this.#end(life, this.#chance.pick([20, 300, 3000]))
  }

  #end(life: Life, backIn: number): void {
    life.end()
    this.trace.note(this.agenda.now, '== down', String(life.number))
    const post = this.posts.find((one) => one.life === life)
    if (post === undefined) return
    post.life = null
    post.running = null
    this.agenda.in(Math.max(backIn, post.downUntil - this.agenda.now), () => {
      if (post.life === null) this.start(post)
    })
  }

  /**
   * An operator removes the lock file and starts a second process. The first one continues: it
   * writes the results of its work under way, and half of the webhooks still come to it, until it
   * sees that it is fenced.
   */
  #second(): void {
    const { trace, agenda } = this
    const post = this.#reached
    const { life, running } = post
    if (life === null || running === null || !life.started || life.stopping || this.sites.quiet) return
    trace.note(agenda.now, '== second process beside', String(life.number))
    this.sites.second = true
    this.#former = { life, running }
    post.life = null
    post.running = null
    this.start()
  }

  /** A process has taken the store. One whose start fails, because the disk refuses writes, leaves it to the first one. */
  #replace(): void {
    const life = this.#former?.life
    if (life === undefined || life.replaced) return
    life.replaced = true
    this.agenda.in(FENCED, () => life.end())
  }

  /** It ends a moment later, as a process does that has a grace. */
  #lost(life: Life): void {
    this.trace.note(this.agenda.now, '== fenced', String(life.number))
    if (this.shared !== null) {
      if (life.disturbed !== 'alone')
        this.trace.broken(
          'I18',
          `life ${life.number} is fenced, and nothing but an outage of all kept it from renewing its leases`,
        )
      return void this.agenda.in(this.#draws.pick(EXITS), () => life.alive && this.#end(life, 300), life)
    }
    if (!life.replaced)
      this.trace.broken('I8', `life ${life.number} is fenced, and no other process took its store`)
  }

  /** SIGTERM, and a new start. What it held must be given back. */
  restart(post = this.anyPost(), downFor = 0): void {
    const { life, running } = post
    if (life === null || running === null || !life.started || life.stopping) return
    life.stopping = true
    post.downUntil = this.agenda.now + downFor
    this.trace.note(this.agenda.now, '== stop', String(life.number))
    void this.stopped(life, running).then(() => {
      if (life.alive) this.#end(life, 50)
    })
    this.#expectEnd(life, GRACE * 1.5)
  }

  #expectEnd(life: Life, ms: number): void {
    this.agenda.in(ms, () => {
      if (!life.alive) return
      // A process that slept gets its time anew.
      if (life.asleepUntil + ms > this.agenda.now)
        this.#expectEnd(life, life.asleepUntil + ms - this.agenda.now)
      else this.trace.broken('I11', 'the stop did not end')
    })
  }

  async stopped(life: Life, { engine, service, stop, close }: Running): Promise<void> {
    stop()
    await engine.stop(GRACE)
    service.stop()
    await close()
    // Stopped work gets a moment to see its signal.
    await new Promise<void>((resolve) => void this.agenda.in(100, resolve, life))
    if (life.streams > 0) this.trace.broken('I11', `${life.streams} streams are open after the stop`)
    if (life.exchanges > 0) this.trace.broken('I11', `${life.exchanges} exchanges are open after the stop`)
    if (life.timers > 0) this.trace.broken('I11', `${life.timers} timers wait after the stop`)
  }

  /** An operator who knows that a handler is paused, and resumes it, as the admin API does, whenever it shows. */
  resume(handler: string, patience = PATIENCE): void {
    if (patience === 0) return
    // The answer may be slow to be seen by a machine that is asleep, or lost; the disk may be full.
    this.agenda.in(1000, () => this.resume(handler, patience - 1))
    const { running, life } = this.anyPost()
    const worker = running?.engine.dispatcher.worker(handler)
    if (running === null || worker?.status().state !== 'paused' || life?.stopping === true) return
    running.store.settings.pauseHandler(handler, null).then(
      () => {
        this.watch.paused(handler, null)
        worker.resume()
      },
      () => undefined,
    )
  }

  #carry(
    {
      sessionId,
      signature,
      timestamp,
      body,
    }: { sessionId: string; signature: string; timestamp: string; body: Buffer },
    answer: (status: number) => void,
  ): void {
    const former = this.#former
    const toFormer = former?.life.alive === true && this.#routes.is(0.5)
    const { life, running } = toFormer ? former : this.anyPost()
    if (life === null || running === null || this.network.serviceUnreachable) return
    const since = this.#arrived.get(signature) ?? this.agenda.now
    this.#arrived.set(signature, since)
    this.agenda.in(
      0,
      () => {
        running.engine.webhooks.receive({ signature, timestamp, body }, ({ status }) => {
          if (!life.alive) return
          if (status === 200) this.watch.acknowledged(sessionId, since)
          this.trace.note(this.agenda.now, 'webhook answered', String(status))
          answer(status)
        })
      },
      life,
    )
  }

  /** The app answers a call that its tool deferred, until the answer was accepted. */
  #answerLater(callId: string, ms: number): void {
    this.agenda.in(ms, () => {
      const { life, running } = this.anyPost()
      const row = this.db
        .prepare<[string], { ended_at: number | null; state: string }>(
          'SELECT ended_at, state FROM calls WHERE call_id = ?',
        )
        .get(callId)
      if (row === undefined || row.ended_at !== null || row.state === 'finished') return
      // An app need not answer once it sees that the session no longer waits.
      const call = this.state.calls.get(callId)
      if (call !== undefined && call.goneAt !== null && this.#chance.is(0.5)) {
        call.forsaken = true
        return
      }
      if (life !== null && running !== null) {
        running.engine.tools.answer(callId, { output: `late ${callId}` }).catch(() => undefined)
      }
      this.#answerLater(callId, 2000)
    })
  }

  /** Nothing goes wrong any more, and all that was wrong is repaired. */
  calm(): void {
    this.sites.quiet = true
    this.watch.calm()
    this.network.serviceUnreachable = false
    this.network.appUnreachable = false
    this.network.hanging = null
    this.wall.offset = 0
    emptyDisk(this.db)
    for (const { life } of this.posts) life?.face?.heal()
    this.shared?.endOutage()
    if (!this.host.accepts) this.newToken()
  }

  /** The token file changes. */
  newToken(): void {
    this.host.token = `${TOKEN}${createHash('sha256').update(this.host.token).digest('hex').slice(0, 8)}`
    this.host.accepts = true
    for (const { running } of this.posts) running?.service.setToken(this.host.token)
  }

  close(): void {
    for (const post of this.posts) post.life?.end()
    release(this.db)
  }
}
