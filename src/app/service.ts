import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { CpuSource } from '../collect/cpu.ts';
import { DiskSource } from '../collect/disk.ts';
import { MemorySource } from '../collect/memory.ts';
import { PathMounts } from '../collect/path-mounts.ts';
import { PowerSource } from '../collect/power.ts';
import { Probe } from '../collect/probe.ts';
import { Sampler } from '../collect/sampler.ts';
import { TemperatureSource } from '../collect/temperature.ts';
import type { Reloaded } from '../config/reload.ts';
import type { Config } from '../config/schema.ts';
import { type Alert, type ChannelMetric, diskMetric, isAboutRemoteNode, raisedBy } from '../core/alerts/alert.ts';
import type { KnownNode } from '../core/alerts/node-watch.ts';
import type { JudgingRules } from '../core/alerts/threshold-monitor.ts';
import { PROGRAMS } from '../core/files/programs.ts';
import { runtimeFolder } from '../core/files/runtime-folder.ts';
import { type DiskReading, type Sample, toHealthStatus } from '../core/health-status.ts';
import { readBootId } from '../core/platform/boot-id.ts';
import { isOffline } from '../core/platform/local-address.ts';
import type { Log, Publisher } from '../core/ports.ts';
import type { ShutdownAction, ShutdownProgress } from '../core/shutdown/shutdown.ts';
import type { ServiceManager } from '../core/supervision.ts';
import { ClockCheck, type ClockCorrection, type ClockEvent, correctionOf } from '../core/time/clock-watch.ts';
import { type Clocks, isoUtc } from '../core/time/time.ts';
import { RestServer, restAnswers } from '../http/server.ts';
import type { GraphNames } from '../ros/graph.ts';
import { monitorName } from '../ros/names.ts';
import { machinePower, machineRunners, machineUsers } from '../shutdown/callers.ts';
import { SafeShutdown } from '../shutdown/safe-shutdown.ts';
import { type ShutdownSettings, shutdownSettings } from '../shutdown/settings.ts';
import { Store } from '../store/store.ts';
import { connectionUsers } from '../system/connection-users.ts';
import { ControlSocket } from '../system/control-socket.ts';
import { HostNames } from '../system/host-names.ts';
import { openSockets } from '../system/open-sockets.ts';
import { boundSockets, peerUser } from '../system/socket-bounds.ts';
import { joinGraph } from './join-graph.ts';
import { Judge, judgingRules } from './judge.ts';
import { Live, RateMeter } from './live.ts';
import { Optimizer } from './optimizer.ts';
import { leftNodes, type NodeFile, nodeAddresses } from './remote-nodes/node-file.ts';
import { remoteNodeRules } from './remote-nodes/remote-node.ts';
import { RemoteNodes } from './remote-nodes/remote-nodes.ts';
import type { RosGraph } from './ros-graph.ts';
import { Supervision } from './supervision.ts';
import { readToken } from './token.ts';
import { servicePorts, View } from './view.ts';

export interface ServiceOptions {
  readonly config: Config;
  readonly configFile: string;
  readonly dataPath: string;
  /** Path of the Unix socket of the REST API; null: no folder for it. */
  readonly restSocket: string | null;
  /** Folders with `reports/`, the data folder first. */
  readonly reportFolders: readonly string[];
  /** Namespace and name of the monitor on the ROS 2 graph. */
  readonly names: GraphNames;
  /** SROS2 enclave given on the command line; null: taken from the environment. */
  readonly enclave: string | null;
  readonly version: string;
  /** False: it runs from a checkout. */
  readonly isPackage: boolean;
  /** Last step of a safe shutdown if the configuration does not set one. */
  readonly standardAction: ShutdownAction;
  /** Receives readiness, status and watchdog pings; null: there is no service manager. */
  readonly manager: ServiceManager | null;
  readonly watchdogSeconds: number | null;
  readonly clocks: Clocks;
  readonly log: Log;
  readonly environment: NodeJS.ProcessEnv;
  /** Mount points of procfs and sysfs; tests pass a recorded tree. */
  readonly procRoot: string;
  readonly sysRoot: string;
}

/** Delay from the first CPU reading to the first sample: 25 ticks per core. */
const FIRST_SAMPLE_SECONDS = 0.25;
/** After the start, open alerts about other nodes are published again after this time at the earliest. */
const DISCOVERY_SECONDS = 10;

/**
 * The composition root: creates the modules, starts them in order and stops them in reverse. Data flow: sampler → threshold monitor and
 * health status → store (spool) → publishers and REST.
 */
export class Service {
  readonly #options: ServiceOptions;
  readonly #temperature: TemperatureSource;
  readonly #power: PowerSource;
  readonly #sampler: Sampler;
  readonly #store: Store;
  readonly #judge: Judge;
  readonly #live = new Live();
  readonly #rate = new RateMeter();
  readonly #view: View;
  readonly #hostNames = new HostNames();
  readonly #rest: RestServer;
  readonly #remoteNodes: RemoteNodes;
  readonly #left: NodeFile<number>;
  readonly #addresses: NodeFile<string>;
  readonly #control: ControlSocket;
  readonly #shutdown: SafeShutdown;
  readonly #ros: RosGraph;
  readonly #clockCheck: ClockCheck;
  readonly #supervision: Supervision;
  readonly #publishers: readonly Publisher[];
  readonly #firstSample = Promise.withResolvers<void>();
  /** As last loaded; keys that need a restart are in force as in `options.config`. */
  #config: Config;
  #startedSeconds = 0;
  #rules: JudgingRules;
  #disks: readonly DiskReading[] = [];
  /** Monotonic time at which the last sample was stored and published. */
  #lastSampleSeconds: number | null = null;
  #shutdownProgress: ShutdownProgress | null = null;
  /** Open alerts about remote nodes that another observer publishes on the graph. */
  readonly #unpublishedAlerts = new Map<string, Alert>();
  /** Alerts of an earlier run that subscribers may hold as open; empty once they are published as they are now. */
  #publishedBefore: readonly Alert[] = [];
  /** Serializes alert changes: each is stored and published before the next one. */
  #alerting: Promise<void> = Promise.resolve();

  constructor(options: ServiceOptions) {
    this.#options = options;
    const { clocks, config, log, procRoot, sysRoot } = options;
    const now = (): number => clocks.monotonicSeconds();
    const localNode = monitorName(options.names);
    this.#config = config;
    this.#rules = judgingRules(config, localNode);
    this.#judge = new Judge(this.#rules, (channel) => this.#channelProblem(channel) === null);
    this.#temperature = new TemperatureSource(sysRoot, config.temperature.sensor, now, log);
    const disk = new DiskSource(config.disk.paths, now, {
      mounts: new PathMounts(config.disk.paths, {
        procRoot,
        sysRoot,
        fstabFile: '/etc/fstab',
        dataFolder: options.dataPath,
        writeError: () => this.#store.error,
        log,
      }),
    });
    const memory = new MemorySource(procRoot);
    this.#power = new PowerSource(sysRoot, now, log);
    const sources = [this.#temperature, disk, new CpuSource(procRoot, now), memory];
    this.#sampler = new Sampler(
      sources.map((source) => new Probe(source, now)),
      clocks,
      1 / config.publish_frequency,
      (sample) => this.#onSample(sample),
      (nowSeconds) => disk.readings(nowSeconds),
    );
    this.#store = new Store({
      dataPath: options.dataPath,
      maxBytes: config.storage.max_megabytes * 1e6,
      node: localNode,
      hertz: config.publish_frequency,
      worker: PROGRAMS.storeWorker,
      environment: options.environment,
      log,
      monotonicSeconds: now,
      onLateOpen: (...found) => this.#onLateOpen(...found),
    });
    this.#clockCheck = new ClockCheck(clocks, (event) => this.#onClockEvent(event));
    this.#view = new View({
      ...options,
      localNode,
      live: this.#live,
      rate: this.#rate,
      sampler: this.#sampler,
      temperature: this.#temperature,
      disks: () => this.#disks,
      memory,
      power: this.#power,
      store: this.#store,
      inventoryProgram: PROGRAMS.inventory,
      remote: () => this.#remoteNodes.counts(),
      shutdown: () => this.#shutdown.status(),
      ros: () => this.#ros.state(),
      channelProblem: (channel) => this.#channelProblem(channel),
      controlSocket: () => this.#control.path,
      ports: () => servicePorts(this.#rest.address, openSockets(), this.#ros.state().domain_id),
      thresholds: () => this.#rules.thresholds,
    });
    this.#rest = new RestServer({
      host: config.rest.host,
      port: config.rest.port,
      token: readToken(config.rest.token_file),
      allowedOrigins: config.rest.allowed_origins,
      allowedHosts: config.rest.allowed_hosts,
      machineNames: this.#hostNames,
      findUsers: connectionUsers(),
      boundSockets,
      peerUser,
      maxConnections: config.rest.max_connections,
      maxEventStreams: config.rest.max_event_streams,
      dashboardFolder: fileURLToPath(PROGRAMS.dashboard),
      openapiFile: fileURLToPath(PROGRAMS.openapi),
      view: this.#view,
      log,
    });
    this.#left = leftNodes(options.dataPath, log);
    this.#addresses = nodeAddresses(options.dataPath, log);
    this.#remoteNodes = new RemoteNodes({
      isOn: config.ros.transport !== 'off' && config.ros.observe !== 'never',
      localNode,
      rules: remoteNodeRules(config),
      clocks,
      log,
      live: this.#live,
      store: this.#store,
      left: this.#left,
      addresses: this.#addresses,
      events: this.#rest.events,
      isOffline,
      firstObserver: () => this.#firstObserver(),
      publishAlerts: (changes) => this.#publishAlerts(changes),
    });
    this.#control = new ControlSocket({
      path: join(runtimeFolder(options.environment) ?? options.dataPath, 'control.sock'),
      forget: (node, requestedBy) =>
        node === null ? this.#remoteNodes.forgetStaleOnRequest(requestedBy) : this.#remoteNodes.forgetOnRequest(node, requestedBy),
      log,
    });
    this.#shutdown = new SafeShutdown({
      settings: this.#shutdownSettings(config),
      clocks,
      log,
      records: this.#store,
      flushStore: () => this.#store.flush(),
      runners: machineRunners(options.environment, log),
      power: machinePower(options.environment, log, clocks),
      findUsers: machineUsers(options.environment),
      bootId: readBootId(procRoot),
      publish: (progress) => {
        this.#shutdownProgress = progress;
        this.#supervision.beat();
        for (const publisher of this.#publishers) publisher.publishShutdown(progress);
      },
    });
    const optimizer = new Optimizer(log, now);
    this.#ros = joinGraph({
      ...options,
      localNode,
      listener: {
        onHealthStatus: (status, sender) => {
          optimizer.count();
          this.#remoteNodes.onHealthStatus(status, sender);
        },
        onAlert: (alert, sender) => this.#remoteNodes.onAlert(alert, sender),
        onOwnName: (sender) => this.#remoteNodes.onOwnName(sender),
        onObserving: (isObserving, appliances) => this.#remoteNodes.setObserving(isObserving, appliances),
        onPublisherGone: (...gone) => this.#remoteNodes.onPublisherGone(...gone),
        onApplianceGone: (...gone) => this.#remoteNodes.onApplianceGone(...gone),
        onSafeShutdown: config.safe_shutdown.enabled ? this.#shutdown.handler : null,
      },
      thresholds: () => this.#rules.thresholds,
      openAlerts: () => this.#live.openAlerts(),
      currentConfig: () => this.#config,
      isExpected: (metric) => this.#judge.isExpected(metric),
    });
    this.#publishers = [this.#rest.events, this.#ros];
    this.#supervision = new Supervision({
      ...options,
      periodSeconds: 1 / config.publish_frequency,
      monotonicSeconds: now,
      lastSampleSeconds: () => this.#lastSampleSeconds,
      summary: () => this.#view.summary(this.#shutdownProgress),
    });
  }

  /**
   * Starts sampling, then REST and the store. Resolves with the address of REST; null: it is not listening yet. Rejects when the data folder
   * is in use, after stopping everything again.
   */
  async start(): Promise<AddressInfo | null> {
    const { clocks, log } = this.#options;
    this.#startedSeconds = clocks.monotonicSeconds();
    this.#supervision.setStatusLine('starting: opening the store');
    this.#live.addNames([this.#rules.nodeName]);
    const sensors = Promise.all([this.#temperature.search(), this.#power.search()]);
    void this.#hostNames.readAgain();
    this.#sampler.start(FIRST_SAMPLE_SECONDS);
    try {
      const address = await this.#rest.start();
      const past = await this.#store.start();
      // Only after the store has locked the data folder: a second instance must not replace the socket.
      if (this.#options.restSocket !== null) await this.#rest.listenOnSocket(this.#options.restSocket);
      this.#live.addNames(past.nodes);
      for (const alert of past.openAlerts) this.#live.setAlert(alert);
      if (past.openAlerts.length > 0) log('notice', 'open alerts restored', { count: past.openAlerts.length });
      this.#publishedBefore = this.#ros.restore();
      this.#republishOpenAlerts(past.openAlerts);
      if (this.#store.error === null) void this.#publishMissedResolutions(past.openAlerts);
      this.#publishAlerts(this.#judge.begin(past, clocks.monotonicSeconds(), clocks.wallMilliseconds()));
      this.#remoteNodes.start(past);
      await this.#control.start();
      await this.#shutdown.start();
      this.#ros.start();
      await sensors;
      void this.#view.readInventory();
      void this.#firstSample.promise.then(() => this.#supervision.readyOnce(() => this.#isUsable()));
      return address;
    } catch (error) {
      await this.stop();
      throw error;
    }
  }

  /** Stops sampling, publishes pending alerts, closes REST and writes everything pending. */
  async stop(): Promise<void> {
    this.#supervision.stop();
    this.#sampler.stop();
    this.#power.close();
    await this.#shutdown.stop();
    this.#control.stop();
    this.#remoteNodes.stop();
    await this.#alerting;
    await this.#ros.stop();
    await this.#rest.stop();
    await Promise.all([this.#left.flush(), this.#addresses.flush()]);
    await this.#store.stop();
  }

  /** Applies the keys that can change at runtime; `restartNeeded` lists the others. Throws UnusableToken with nothing changed. */
  reload({ config, restartNeeded }: Reloaded): void {
    this.#rest.setToken(readToken(config.rest.token_file));
    this.#rest.setAllowedHosts(config.rest.allowed_hosts);
    this.#config = config;
    this.#rules = judgingRules(config, this.#rules.nodeName);
    this.#judge.setRules(this.#rules);
    this.#remoteNodes.setRules(remoteNodeRules(config));
    void this.#shutdown.configure(this.#shutdownSettings(config));
    this.#view.setConfigLoaded(restartNeeded);
    this.#supervision.beat();
  }

  /** Whether REST responds, or does not listen for a known reason, in which case the service is ready without it. */
  async #isUsable(): Promise<boolean> {
    const { address } = this.#rest;
    return address === null || (await restAnswers(address));
  }

  /** Why a channel does not work; null: it does, or it is switched off. */
  #channelProblem(channel: ChannelMetric): string | null {
    return channel === 'rest_api' ? this.#rest.problem : this.#ros.problem;
  }

  #shutdownSettings(config: Config): ShutdownSettings {
    return shutdownSettings(config, this.#options.configFile, this.#options.standardAction);
  }

  /** Republishes the open alerts raised by this machine, so that subscribers that join after a restart receive them. */
  #republishOpenAlerts(openAlerts: readonly Alert[]): void {
    for (const alert of openAlerts) {
      const raiser = raisedBy(alert, this.#rules.nodeName);
      // Another observer may have resolved it meanwhile.
      if (raiser === 'observer') this.#unpublishedAlerts.set(alert.alert_id, alert);
      else if (raiser !== 'other') this.#alerting = this.#alerting.then(() => this.#publishOnGraph(alert));
    }
  }

  /**
   * Publishes the resolution of alerts that an earlier run has published and that are not open any more: resolved while this machine was not
   * on the graph, or just before it was killed. Alerts under a former name of this machine count as resolved.
   */
  async #publishMissedResolutions(openAlerts: readonly Alert[]): Promise<void> {
    const isOpen = new Set(openAlerts.filter((alert) => raisedBy(alert, this.#rules.nodeName) !== 'other').map(({ alert_id }) => alert_id));
    const published = this.#publishedBefore;
    this.#publishedBefore = [];
    for (const alert of published) {
      if (isOpen.has(alert.alert_id)) continue;
      const nowMs = this.#options.clocks.wallMilliseconds();
      const asked = { id: alert.alert_id, node: null, severity: null, metric: null, resolved: true, range: null, changes: false };
      const found = await this.#store.alerts({ ...asked, limit: 1, after: null, nowMs }).catch(() => null);
      const stored = found?.alerts[0];
      if (stored) this.#ros.publishAlert(stored);
      // Not in the history, for example because the database was replaced: what subscribers receive is recorded.
      else this.#publishAlerts([{ ...alert, timestamp: isoUtc(nowMs), resolved: true }]);
    }
  }

  /** Records why a reload was rejected, for /status. */
  reloadFailed(problem: string): void {
    this.#view.setConfigProblem(problem);
  }

  #onSample(sample: Sample): void {
    this.#clockCheck.check();
    this.#disks = sample.disks;
    this.#power.sample();
    // Recorded and published after the sample, since that takes at least one turn.
    this.#publishAlerts(this.#judge.judge(sample));
    const { nodeName, thresholds } = this.#rules;
    const status = toHealthStatus(sample, nodeName, thresholds, this.#live.openAlertsOf(nodeName));
    const line = JSON.stringify(status);
    const cursor = this.#store.recordHealth(status, line, sample.timestampMs);
    this.#live.setStatus(status, sample.monotonicSeconds, 1 / this.#options.config.publish_frequency);
    this.#rate.count(sample.monotonicSeconds);
    for (const publisher of this.#publishers) publisher.publishHealth(status, line, cursor);
    if (this.#unpublishedAlerts.size > 0 && this.#isDiscoveryOver() && this.#isFirstObserver())
      this.#alerting = this.#alerting.then(() => this.#publishUnpublished());
    this.#lastSampleSeconds = this.#options.clocks.monotonicSeconds();
    this.#firstSample.resolve();
  }

  #onClockEvent(event: ClockEvent): void {
    this.#store.recordClockEvent(event);
    const what = event.kind === 'suspend' ? 'suspend detected' : 'wall clock step detected';
    this.#options.log('notice', what, { seconds: event.delta_seconds });
    const bootSeconds = this.#options.clocks.bootSeconds();
    if (event.kind === 'step' && bootSeconds !== null) this.#correctTimes(correctionOf(event, bootSeconds));
  }

  /** What is still open gets the time that it would have had; subscribers get open alerts again. */
  #correctTimes(correction: ClockCorrection): void {
    this.#view.correct(correction);
    this.#remoteNodes.correct(correction);
    this.#alerting = this.#alerting.then(async () => {
      for (const alert of await this.#store.correctAlerts(correction)) {
        this.#rest.events.publishAlert(alert, null);
        await this.#publishOnGraph(alert);
      }
    });
  }

  #publishAlerts(changes: readonly Alert[]): void {
    for (const alert of changes) {
      this.#live.setAlert(alert);
      this.#alerting = this.#alerting.then(() => this.#publishAlert(alert));
    }
  }

  async #publishAlert(alert: Alert): Promise<void> {
    const { cursor } = await this.#store.recordAlert(alert);
    const { alert_id, severity, metric, value, threshold } = alert;
    const level = alert.resolved ? 'notice' : severity === 'WARNING' ? 'warning' : 'error';
    const problem =
      metric === 'rest_api' || metric === 'ros_graph'
        ? this.#channelProblem(metric)
        : this.#disks.find(({ path }) => diskMetric(path) === metric)?.problem;
    const fields = { metric, value, threshold, alert_id, ...(problem ? { problem } : {}) };
    this.#options.log(level, alert.resolved ? 'alert resolved' : `alert ${severity}`, fields);
    this.#rest.events.publishAlert(alert, cursor);
    await this.#publishOnGraph(alert);
    this.#supervision.beat(); // The status line contains the number of open alerts.
  }

  /** Among the observers of a stale node only the first publishes the alert on the graph; if it becomes stale too, the next one does. */
  async #publishOnGraph(alert: Alert): Promise<void> {
    const { alert_id, resolved } = alert;
    const isOwn = raisedBy(alert, this.#rules.nodeName) !== 'observer';
    if (!isOwn && !this.#ros.hasPublished(alert_id) && !this.#isFirstObserver()) {
      if (resolved) this.#unpublishedAlerts.delete(alert_id);
      else this.#unpublishedAlerts.set(alert_id, alert);
      return;
    }
    this.#unpublishedAlerts.delete(alert_id);
    // An open alert of this machine itself is published again after a restart in any case, and resolved then.
    if (!isOwn && !resolved) await this.#ros.recordPublication(alert);
    this.#ros.publishAlert(alert);
  }

  async #publishUnpublished(): Promise<void> {
    for (const alert of this.#unpublishedAlerts.values()) await this.#publishOnGraph(alert);
  }

  /** Whether the other observers are known after the start. */
  #isDiscoveryOver(): boolean {
    return this.#options.clocks.monotonicSeconds() - this.#startedSeconds >= DISCOVERY_SECONDS;
  }

  #isFirstObserver(): boolean {
    return this.#firstObserver() === this.#rules.nodeName;
  }

  /** Null: none, or not known yet. */
  #firstObserver(): string | null {
    const now = this.#options.clocks.monotonicSeconds();
    return this.#ros.observers().find((name) => !this.#live.node(name, now).stale) ?? null;
  }

  #onLateOpen(openAlerts: readonly Alert[], remoteNodes: readonly KnownNode[]): void {
    for (const alert of openAlerts) if (isAboutRemoteNode(alert, this.#rules.nodeName)) this.#live.setAlert(alert);
    this.#remoteNodes.adopt(openAlerts, remoteNodes);
    void this.#publishMissedResolutions(openAlerts);
    this.#publishAlerts(this.#judge.adopt(openAlerts, this.#options.clocks.wallMilliseconds()));
    for (const alert of [...this.#judge.openAlerts(), ...this.#remoteNodes.openAlerts()]) this.#live.setAlert(alert);
  }
}
