/**
 * All words of the page in English. Another language is another file of this form. Sentences are complete, since the order of words
 * differs between languages; functions receive what belongs into them.
 */
const plural = (count: number, one: string, many: string): string => `${count} ${count === 1 ? one : many}`;
const list = (names: readonly string[]): string =>
  names.length < 2 ? names.join('') : `${names.slice(0, -1).join(', ')} and ${names.at(-1)}`;

export const en = {
  /** BCP 47. Numbers and dates are formatted for it. */
  tag: 'en-GB',
  name: 'English',
  direction: 'ltr' as 'ltr' | 'rtl',
  units: { day: 'd', hour: 'h', minute: 'min', second: 's' },

  /** A status: the word, what it means to someone who is not an engineer, and what to do now. */
  status: {
    OK: { word: 'OK', meaning: 'Everything is within its limits.', action: 'Nothing to do.' },
    WARNING: {
      word: 'WARNING',
      meaning: 'Something is near its limit. The robot still works.',
      action: 'Finish what you are doing, then look at the alert.',
    },
    ERROR: {
      word: 'ERROR',
      meaning: 'Something cannot be measured, so a problem could go unnoticed.',
      action: 'Look at the alert; a restart of the robot often helps. If not, ask the operator.',
    },
    CRITICAL: {
      word: 'CRITICAL',
      meaning: 'Something is beyond its limit. The robot may slow down, stop or lose data.',
      action: 'Stop the robot safely and look at the alert.',
    },
    UNKNOWN: {
      word: 'UNKNOWN',
      meaning: 'There is no current data.',
      action: 'Check whether the robot is switched on and connected to the network.',
    },
  },

  metrics: {
    cpu_percent: {
      name: 'CPU usage',
      short: 'CPU',
      unit: '%',
      meaning: 'How busy the processor is. 100 % means that all its cores are busy.',
      action: 'Close programs that are not needed. If it stays high, ask the operator which program uses the processor.',
    },
    memory_percent: {
      name: 'Memory usage',
      short: 'Mem',
      unit: '%',
      meaning: 'How much of the working memory is in use. When it is full, programs are stopped.',
      action: 'Close programs that are not needed, or restart the robot.',
    },
    disk_percent: {
      name: 'Disk usage',
      short: 'Disk',
      unit: '%',
      meaning: 'How full the fullest monitored disk is. On a full disk nothing can be saved.',
      action: 'Delete or move recordings and logs that are not needed.',
    },
    temperature: {
      name: 'Temperature',
      short: 'Temp',
      unit: '°C',
      meaning: 'How hot the processor is. When it is too hot, it slows down to protect itself.',
      action: 'Let the robot rest, check that its fan turns and that its openings are free of dust.',
    },
  },
  /** Alerts that are not about one of the four metrics. */
  otherAlerts: {
    health_status: {
      meaning: 'The robot stopped sending its status.',
      action: 'Check whether it is switched on and connected to the network.',
    },
    remote_nodes: {
      meaning: 'This machine can observe a limited number of robots, and the list is almost full.',
      action: 'Remove robots that no longer exist: edge-health nodes forget NAME.',
    },
    disk: {
      meaning: 'A monitored disk is missing or does not answer.',
      action: 'Check whether it is connected, or remove its path from the configuration.',
    },
    other: { meaning: 'Reported by another program.', action: 'See the documentation of that program.' },
  },

  alerts: {
    noData: (node: string): string => `No data from ${node}`,
    listFull: 'The list of remote nodes is almost full',
    listWasFull: 'The list of remote nodes was almost full',
    notMeasured: (name: string): string => `${name} cannot be measured`,
    wasNotMeasured: (name: string): string => `${name} could not be measured`,
    notRead: (name: string): string => `${name} cannot be read`,
    wasNotRead: (name: string): string => `${name} could not be read`,
    noLongerCritical: (name: string): string => `${name} is no longer critical`,
    high: (name: string): string => `${name} is high`,
    wasHigh: (name: string): string => `${name} was high`,
    critical: (name: string): string => `${name} is critically high`,
    wasCritical: (name: string): string => `${name} was critically high`,
    disk: (path: string): string => `Disk ${path}`,
    nodesOf: (value: number, threshold: number): string => `${value} nodes, threshold ${threshold}`,
    silence: (silent: string, timeout: string): string => `no data for ${silent}, timeout ${timeout}`,
    valueOf: (value: string, threshold: string): string => `${value}, threshold ${threshold}`,
    since: (time: string): string => `since ${time}`,
    title: 'Alerts',
    none: 'No open alerts',
    noneOf: (node: string): string => `No open alerts of ${node}`,
    noneAtLastUpdate: 'No open alerts at last update.',
    notKnownYet: 'Not known yet',
    notReadable: 'The list of alerts cannot be read right now.',
    notReadableButCounted: (count: number): string =>
      `The list of alerts cannot be read right now; the service counts ${plural(count, 'open alert', 'open alerts')}.`,
    resolvedTitle: 'Recently resolved',
    others: (count: number): string => `Other nodes: ${plural(count, 'open alert', 'open alerts')}`,
    showNode: (node: string): string => `Show ${node}`,
  },

  headline: {
    title: 'Overall status',
    asking: 'Asking the health service…',
    lastKnown: 'The numbers below are the last known ones.',
    nothingMeasured: 'Nothing could be measured.',
    allFour: 'All four measurements are within their limits.',
    all: 'All measurements are within their limits.',
    notSettled: (names: readonly string[]): string => `Within the limits again, not settled yet: ${list(names)}.`,
    warning: 'A measurement has crossed its warning threshold.',
    error: 'A measurement cannot be taken.',
    critical: 'A measurement has crossed its critical threshold.',
    noDataSince: (node: string, time: string): string => `No data from ${node} since ${time}.`,
    noDataSinceStart: (node: string): string => `No data from ${node} since the service started.`,
    isOther: (node: string, status: string): string => `${node} is ${status}`,
    thisIsOk: 'This machine is OK.',
  },

  connection: {
    live: 'Live',
    measuredAt: (time: string): string => `Measured ${time}`,
    connecting: 'Connecting…',
    noDataYet: 'No data yet.',
    noAnswer: 'No answer.',
    noDataSince: (time: string): string => `No data since ${time}.`,
    measuresNothing: 'The service answers, but measures nothing.',
    waiting: 'Waiting for the next measurement…',
    reconnecting: 'Trying to reconnect…',
    tryingAgain: (reason: string): string => `${reason} Trying again…`,
    tooManyPages: 'Too many dashboards are open on this machine.',
    answersError: (status: number): string => `The service answers with error ${status}.`,
  },

  notices: {
    undervoltage: 'The power supply is too weak (undervoltage). Use a stronger supply or a shorter cable.',
    notSaved: 'Measurements cannot be saved. They are still shown here.',
    notSavedSince: (time: string, error: string): string =>
      `Measurements cannot be saved since ${time}${error === '' ? '' : ` (${error})`}. They are still shown here.`,
    clockAhead: (by: string): string => `This machine's clock is ${by} ahead of yours. Times on this page are the machine's.`,
    clockBehind: (by: string): string => `This machine's clock is ${by} behind yours. Times on this page are the machine's.`,
    nodeClockAhead: (node: string, by: string): string =>
      `The clock of ${node} is ${by} ahead of this machine's. The times of its measurements are its own.`,
    nodeClockBehind: (node: string, by: string): string =>
      `The clock of ${node} is ${by} behind this machine's. The times of its measurements are its own.`,
    shutdown: 'safe shutdown',
    dryRun: 'dry run of a safe shutdown',
    requestedBy: (reason: string, by: string): string => `(${reason}, requested by ${by})`,
    shutdownRuns: (what: string, origin: string, left: string, message: string): string =>
      `This machine: ${what} in progress ${origin}, ${left} left: ${message}.`,
    shutdownEnded: (what: string, origin: string, time: string, message: string): string =>
      `The ${what} ${origin} ended at ${time}: ${message}.`,
  },

  /** The frame around the views. */
  shell: {
    views: 'Views',
    appearance: 'Appearance',
    schemes: { auto: 'As the system', light: 'Light', dark: 'Dark', contrast: 'High contrast' },
    locked: 'Locked',
    seenFrom: (host: string): string => `seen from ${host}`,
    lastKnown: 'last known',
    noSuchView: 'There is no such page.',
    noSuchNode: (node: string): string => `No node is named ${node}.`,
    toStart: 'Show all nodes',
    loading: 'Loading…',
    failed: (why: string): string => `Could not be loaded: ${why}`,
    tryAgain: 'Try again',
  },

  token: {
    title: 'Access token needed',
    about: 'This machine requires a token. Ask its administrator.',
    label: 'Token',
    rejected: 'This token was not accepted.',
    missing: 'Enter the token first.',
    malformed: 'A token has no spaces and no special characters.',
    submit: 'Show health',
    kept: 'It is kept until this browser tab is closed.',
  },

  nodes: {
    summary: (total: number, parts: readonly string[]): string => `${plural(total, 'node', 'nodes')}: ${parts.join(', ')}`,
    withoutData: 'without data',
    left: 'left',
    here: 'here',
    live: 'live',
    leftAt: (time: string): string => `left at ${time}`,
    noDataYet: 'no data yet',
    ago: (age: string): string => `${age} ago`,
  },

  wall: {
    title: 'All nodes',
    fullScreen: 'Full screen',
    leaveFullScreen: 'Leave full screen',
    dim: 'Dim',
    mayGoDark:
      'The screen may turn itself off: browsers keep it on only for pages loaded over HTTPS. Change the power settings of this computer instead.',
  },

  node: {
    title: 'Node',
    measurements: 'Measurements',
    unavailable: 'unavailable',
    noData: 'no data',
    noHistory: 'no history right now',
    steadyAt: (value: string, unit: string): string => `steady at ${value} ${unit}`,
    range: (min: string, max: string, unit: string): string => `${min} to ${max} ${unit}`,
    thresholds: {
      WARNING: (value: string): string => `warning from ${value}`,
      CRITICAL: (value: string): string => `critical from ${value}`,
    },
    chart: (metric: string, period: string, range: string): string => `${metric}, ${period}: ${range}`,
    states: { warning: 'Warning', critical: 'Critical', unavailable: 'No reading' },
    shownTime: 'Time shown in the charts',
    between: (from: string, to: string): string => `${from} to ${to}`,
    move: 'Move and zoom',
    earlier: 'Earlier',
    later: 'Later',
    zoomIn: 'Zoom in',
    zoomOut: 'Zoom out',
    byDate: 'By date',
    from: 'From',
    to: 'To',
    events: 'In this time',
    stillOpen: 'still open',
    restart: 'The service started',
    suspend: (by: string): string => `The machine slept for ${by}`,
    clockForward: (by: string): string => `The clock was put forward by ${by}`,
    clockBack: (by: string): string => `The clock was put back by ${by}`,
    sensor: (name: string, reason: string): string => `Sensor ${name}: ${reason}`,
    throttled: (count: number): string =>
      `The processor has slowed down ${plural(count, 'time', 'times')} since the start because it was too hot. Improve its cooling.`,
    averages: (step: string): string => `averages of ${step}`,
    windows: {
      '5min': { short: '5 min', long: 'last 5 minutes' },
      '1h': { short: '1 h', long: 'last hour' },
      '24h': { short: '24 h', long: 'last 24 hours' },
      '7d': { short: '7 d', long: 'last 7 days' },
    },
  },

  episodes: {
    title: 'Alerts',
    count: (count: number): string => plural(count, 'alert', 'alerts'),
    none: 'No alert matches.',
    isMore: 'Older alerts are not shown; choose a shorter period.',
    period: 'Period',
    periods: { '24h': 'Last 24 hours', '7d': 'Last 7 days', '30d': 'Last 30 days' },
    state: 'State',
    severity: 'Severity',
    node: 'Node',
    metric: 'Metric',
    all: 'All',
    open: 'Open',
    past: 'Past',
    openFor: (time: string): string => `open for ${time}`,
    lasted: (time: string): string => `lasted ${time}`,
    resolved: 'resolved',
    unknown: 'This alert is not known.',
    toAll: 'Show all alerts',
    begin: 'Begin',
    end: 'End',
    stillOpen: 'still open',
    length: 'Duration',
    highest: 'Highest value',
    meaning: 'What this means',
    action: 'What to do now',
    showAround: 'Show the measurements around it',
    changes: 'Changes',
    time: 'Time',
    value: 'Value',
    threshold: 'Threshold',
    copyLink: 'Copy link',
    copied: 'Copied.',
  },

  system: {
    title: 'System',
    version: 'Version',
    runningFor: 'Running for',
    published: 'Published',
    publishedOf: (measured: string, configured: string): string => `${measured} of ${configured}`,
    missedSamples: 'Missed samples',
    storage: 'Storage',
    storageOf: (state: string, size: string, max: string): string => `${state}, ${size} of ${max}`,
    sensor: 'Temperature sensor',
    none: 'none',
    ros: 'ROS 2',
    withProblem: (transport: string): string => `${transport}, problem`,
    otherNodes: 'Other nodes',
    shownBy: (observers: string): string => `shown by ${observers}`,
    jobs: {
      title: 'Scheduled jobs',
      stopped: 'The scheduler has not run: nothing is checked, collected or backed up.',
      stoppedSince: (time: string): string => `The scheduler has not run since ${time}: nothing is checked, collected or backed up.`,
      runsFor: (time: string): string => `runs for ${time}`,
      last: (time: string): string => `last ${time}`,
      hasNotRun: 'has not run yet',
      off: 'off',
      next: (time: string): string => `next ${time}`,
      missed: (count: number): string => `${count} missed`,
      overlaps: (count: number): string => plural(count, 'overlap', 'overlaps'),
      running: 'running',
      waiting: 'waiting',
    },
  },
};

export type Words = typeof en;
