import type { Words } from './en.ts';

/** The words of the page in German; see en.ts. */
const plural = (count: number, one: string, many: string): string => `${count} ${count === 1 ? one : many}`;
const list = (names: readonly string[]): string =>
  names.length < 2 ? names.join('') : `${names.slice(0, -1).join(', ')} und ${names.at(-1)}`;

export const de: Words = {
  tag: 'de-DE',
  name: 'Deutsch',
  direction: 'ltr',
  units: { day: 'T', hour: 'h', minute: 'min', second: 's' },

  status: {
    OK: { word: 'OK', meaning: 'Alles liegt innerhalb der Grenzen.', action: 'Es ist nichts zu tun.' },
    WARNING: {
      word: 'WARNUNG',
      meaning: 'Ein Wert liegt nahe an seiner Grenze. Der Roboter arbeitet noch.',
      action: 'Beenden Sie, was Sie gerade tun, und sehen Sie sich dann die Meldung an.',
    },
    ERROR: {
      word: 'FEHLER',
      meaning: 'Etwas kann nicht gemessen werden; ein Problem bliebe unbemerkt.',
      action: 'Sehen Sie sich die Meldung an; oft hilft ein Neustart des Roboters. Sonst fragen Sie die Betreuung.',
    },
    CRITICAL: {
      word: 'KRITISCH',
      meaning: 'Ein Wert liegt über seiner Grenze. Der Roboter kann langsamer werden, stehen bleiben oder Daten verlieren.',
      action: 'Halten Sie den Roboter sicher an und sehen Sie sich die Meldung an.',
    },
    UNKNOWN: {
      word: 'UNBEKANNT',
      meaning: 'Es gibt keine aktuellen Daten.',
      action: 'Prüfen Sie, ob der Roboter eingeschaltet und mit dem Netz verbunden ist.',
    },
  },

  metrics: {
    cpu_percent: {
      name: 'CPU-Auslastung',
      short: 'CPU',
      unit: '%',
      meaning: 'Wie stark der Prozessor beschäftigt ist. 100 % heißt, dass alle seine Kerne arbeiten.',
      action:
        'Schließen Sie Programme, die nicht gebraucht werden. Bleibt der Wert hoch, fragen Sie die Betreuung, welches Programm es ist.',
    },
    memory_percent: {
      name: 'Speicherbelegung',
      short: 'RAM',
      unit: '%',
      meaning: 'Wie viel des Arbeitsspeichers belegt ist. Ist er voll, werden Programme beendet.',
      action: 'Schließen Sie Programme, die nicht gebraucht werden, oder starten Sie den Roboter neu.',
    },
    disk_percent: {
      name: 'Datenträgerbelegung',
      short: 'Disk',
      unit: '%',
      meaning: 'Wie voll der vollste überwachte Datenträger ist. Auf einem vollen lässt sich nichts speichern.',
      action: 'Löschen oder verschieben Sie Aufnahmen und Protokolle, die nicht gebraucht werden.',
    },
    temperature: {
      name: 'Temperatur',
      short: 'Temp',
      unit: '°C',
      meaning: 'Wie heiß der Prozessor ist. Ist er zu heiß, wird er langsamer, um sich zu schützen.',
      action: 'Lassen Sie den Roboter ruhen und prüfen Sie, ob sich der Lüfter dreht und die Öffnungen frei von Staub sind.',
    },
  },
  otherAlerts: {
    health_status: {
      meaning: 'Der Roboter sendet seinen Status nicht mehr.',
      action: 'Prüfen Sie, ob er eingeschaltet und mit dem Netz verbunden ist.',
    },
    remote_nodes: {
      meaning: 'Dieser Rechner kann nur eine begrenzte Zahl von Robotern beobachten, und die Liste ist fast voll.',
      action: 'Entfernen Sie Roboter, die es nicht mehr gibt: edge-health nodes forget NAME.',
    },
    disk: {
      meaning: 'Ein überwachter Datenträger fehlt oder antwortet nicht.',
      action: 'Prüfen Sie, ob er angeschlossen ist, oder nehmen Sie seinen Pfad aus der Konfiguration.',
    },
    other: { meaning: 'Von einem anderen Programm gemeldet.', action: 'Siehe die Dokumentation dieses Programms.' },
  },

  alerts: {
    noData: (node) => `Keine Daten von ${node}`,
    listFull: 'Die Liste der Knoten ist fast voll',
    listWasFull: 'Die Liste der Knoten war fast voll',
    notMeasured: (name) => `${name} kann nicht gemessen werden`,
    wasNotMeasured: (name) => `${name} konnte nicht gemessen werden`,
    notRead: (name) => `${name} kann nicht gelesen werden`,
    wasNotRead: (name) => `${name} konnte nicht gelesen werden`,
    noLongerCritical: (name) => `${name} ist nicht mehr kritisch`,
    high: (name) => `${name} ist hoch`,
    wasHigh: (name) => `${name} war hoch`,
    critical: (name) => `${name} ist kritisch hoch`,
    wasCritical: (name) => `${name} war kritisch hoch`,
    disk: (path) => `Datenträger ${path}`,
    nodesOf: (value, threshold) => `${value} Knoten, Grenze ${threshold}`,
    silence: (silent, timeout) => `keine Daten seit ${silent}, erlaubt sind ${timeout}`,
    valueOf: (value, threshold) => `${value}, Grenze ${threshold}`,
    since: (time) => `seit ${time}`,
    title: 'Meldungen',
    none: 'Keine offenen Meldungen',
    noneOf: (node) => `Keine offenen Meldungen von ${node}`,
    noneAtLastUpdate: 'Zuletzt gab es keine offenen Meldungen.',
    notKnownYet: 'Noch nicht bekannt',
    notReadable: 'Die Meldungen können gerade nicht gelesen werden.',
    notReadableButCounted: (count) =>
      `Die Meldungen können gerade nicht gelesen werden; der Dienst zählt ${plural(count, 'offene Meldung', 'offene Meldungen')}.`,
    resolvedTitle: 'Kürzlich behoben',
    others: (count) => `Andere Knoten: ${plural(count, 'offene Meldung', 'offene Meldungen')}`,
    showNode: (node) => `${node} zeigen`,
  },

  headline: {
    title: 'Gesamtstatus',
    asking: 'Der Dienst wird gefragt…',
    lastKnown: 'Die Zahlen unten sind die zuletzt bekannten.',
    nothingMeasured: 'Es konnte nichts gemessen werden.',
    allFour: 'Alle vier Messwerte liegen innerhalb ihrer Grenzen.',
    all: 'Alle Messwerte liegen innerhalb ihrer Grenzen.',
    notSettled: (names) => `Wieder innerhalb der Grenzen, aber noch nicht lange genug: ${list(names)}.`,
    warning: 'Ein Messwert hat seine Warngrenze überschritten.',
    error: 'Ein Messwert fehlt.',
    critical: 'Ein Messwert hat seine kritische Grenze überschritten.',
    noDataSince: (node, time) => `Keine Daten von ${node} seit ${time}.`,
    noDataSinceStart: (node) => `Keine Daten von ${node}, seit der Dienst läuft.`,
    isOther: (node, status) => `${node}: ${status}`,
    thisIsOk: 'Dieser Rechner ist OK.',
  },

  connection: {
    live: 'Live',
    measuredAt: (time) => `Gemessen ${time}`,
    connecting: 'Verbindung wird aufgebaut…',
    noDataYet: 'Noch keine Daten.',
    noAnswer: 'Keine Antwort.',
    noDataSince: (time) => `Keine Daten seit ${time}.`,
    measuresNothing: 'Der Dienst antwortet, misst aber nichts.',
    waiting: 'Warten auf die nächste Messung…',
    reconnecting: 'Neuer Versuch läuft…',
    tryingAgain: (reason) => `${reason} Neuer Versuch…`,
    tooManyPages: 'Auf diesem Rechner sind zu viele Dashboards geöffnet.',
    answersError: (status) => `Der Dienst antwortet mit Fehler ${status}.`,
  },

  notices: {
    undervoltage: 'Die Stromversorgung ist zu schwach (Unterspannung). Verwenden Sie ein stärkeres Netzteil oder ein kürzeres Kabel.',
    notSaved: 'Messwerte können nicht gespeichert werden. Hier werden sie weiter gezeigt.',
    notSavedSince: (time, error) =>
      `Messwerte können seit ${time} nicht gespeichert werden${error === '' ? '' : ` (${error})`}. Hier werden sie weiter gezeigt.`,
    clockAhead: (by) => `Die Uhr dieses Rechners geht gegenüber Ihrer um ${by} vor. Alle Zeiten hier sind seine.`,
    clockBehind: (by) => `Die Uhr dieses Rechners geht gegenüber Ihrer um ${by} nach. Alle Zeiten hier sind seine.`,
    nodeClockAhead: (node, by) =>
      `Die Uhr von ${node} geht gegenüber der dieses Rechners um ${by} vor. Die Zeiten seiner Messwerte sind seine eigenen.`,
    nodeClockBehind: (node, by) =>
      `Die Uhr von ${node} geht gegenüber der dieses Rechners um ${by} nach. Die Zeiten seiner Messwerte sind seine eigenen.`,
    shutdown: 'sicheres Herunterfahren',
    dryRun: 'Probelauf des sicheren Herunterfahrens',
    requestedBy: (reason, by) => `(${reason}, angefordert von ${by})`,
    shutdownRuns: (what, origin, left, message) => `Dieser Rechner: ${what} ${origin}, noch ${left}: ${message}.`,
    shutdownEnded: (what, origin, time, message) => `Beendet um ${time}: ${what} ${origin}: ${message}.`,
  },

  shell: {
    views: 'Ansichten',
    appearance: 'Darstellung',
    schemes: { auto: 'Wie das System', light: 'Hell', dark: 'Dunkel', contrast: 'Hoher Kontrast' },
    locked: 'Gesperrt',
    seenFrom: (host) => `gesehen von ${host}`,
    lastKnown: 'zuletzt bekannt',
    noSuchView: 'Diese Seite gibt es nicht.',
    noSuchNode: (node) => `Kein Knoten heißt ${node}.`,
    toStart: 'Alle Knoten zeigen',
    loading: 'Wird geladen…',
    failed: (why) => `Konnte nicht geladen werden: ${why}`,
    tryAgain: 'Noch einmal',
  },

  token: {
    title: 'Zugangsschlüssel nötig',
    about: 'Dieser Rechner verlangt einen Schlüssel. Fragen Sie die Person, die ihn verwaltet.',
    label: 'Schlüssel',
    rejected: 'Dieser Schlüssel wurde nicht angenommen.',
    missing: 'Geben Sie zuerst den Schlüssel ein.',
    malformed: 'Ein Schlüssel hat weder Leerzeichen noch Sonderzeichen.',
    submit: 'Zeigen',
    kept: 'Er bleibt gespeichert, bis dieser Tab geschlossen wird.',
  },

  nodes: {
    summary: (total, parts) => `${total} Knoten: ${parts.join(', ')}`,
    withoutData: 'ohne Daten',
    left: 'abgemeldet',
    here: 'hier',
    live: 'live',
    leftAt: (time) => `abgemeldet um ${time}`,
    noDataYet: 'noch keine Daten',
    ago: (age) => `vor ${age}`,
  },

  wall: {
    title: 'Alle Knoten',
    fullScreen: 'Vollbild',
    leaveFullScreen: 'Vollbild beenden',
    dim: 'Abdunkeln',
    mayGoDark:
      'Der Bildschirm schaltet sich vielleicht ab: Browser halten ihn nur bei Seiten über HTTPS an. Ändern Sie stattdessen die Energieeinstellungen dieses Rechners.',
  },

  node: {
    title: 'Knoten',
    measurements: 'Messwerte',
    unavailable: 'nicht verfügbar',
    noData: 'keine Daten',
    noHistory: 'der Verlauf fehlt gerade',
    steadyAt: (value, unit) => `gleichbleibend ${value} ${unit}`,
    range: (min, max, unit) => `${min} bis ${max} ${unit}`,
    thresholds: {
      WARNING: (value) => `Warnung ab ${value}`,
      CRITICAL: (value) => `kritisch ab ${value}`,
    },
    chart: (metric, period, range) => `${metric}, ${period}: ${range}`,
    states: { warning: 'Warnung', critical: 'Kritisch', unavailable: 'Kein Wert' },
    shownTime: 'Zeitraum der Diagramme',
    between: (from, to) => `${from} bis ${to}`,
    move: 'Verschieben und vergrößern',
    earlier: 'Früher',
    later: 'Später',
    zoomIn: 'Vergrößern',
    zoomOut: 'Verkleinern',
    byDate: 'Nach Datum',
    from: 'Von',
    to: 'Bis',
    events: 'In dieser Zeit',
    stillOpen: 'noch offen',
    restart: 'Der Dienst ist gestartet',
    suspend: (by) => `Der Rechner schlief ${by}`,
    clockForward: (by) => `Die Uhr wurde um ${by} vorgestellt`,
    clockBack: (by) => `Die Uhr wurde um ${by} zurückgestellt`,
    sensor: (name, reason) => `Sensor ${name}: ${reason}`,
    throttled: (count) =>
      `Der Prozessor ist seit dem Start ${count}-mal langsamer geworden, weil er zu heiß war. Verbessern Sie die Kühlung.`,
    averages: (step) => `Mittelwerte je ${step}`,
    windows: {
      '5min': { short: '5 min', long: 'letzte 5 Minuten' },
      '1h': { short: '1 h', long: 'letzte Stunde' },
      '24h': { short: '24 h', long: 'letzte 24 Stunden' },
      '7d': { short: '7 T', long: 'letzte 7 Tage' },
    },
  },

  episodes: {
    title: 'Meldungen',
  },

  system: {
    title: 'System',
    version: 'Version',
    runningFor: 'Läuft seit',
    published: 'Veröffentlicht',
    publishedOf: (measured, configured) => `${measured} von ${configured}`,
    missedSamples: 'Ausgelassene Messungen',
    storage: 'Speicherung',
    storageOf: (state, size, max) => `${state}, ${size} von ${max}`,
    sensor: 'Temperatursensor',
    none: 'keiner',
    ros: 'ROS 2',
    withProblem: (transport) => `${transport}, Problem`,
    otherNodes: 'Andere Knoten',
    shownBy: (observers) => `gezeigt von ${observers}`,
    jobs: {
      title: 'Geplante Aufgaben',
      stopped: 'Der Zeitplaner läuft nicht: nichts wird geprüft, gesammelt oder gesichert.',
      stoppedSince: (time) => `Der Zeitplaner lief seit ${time} nicht: nichts wird geprüft, gesammelt oder gesichert.`,
      runsFor: (time) => `läuft seit ${time}`,
      last: (time) => `zuletzt ${time}`,
      hasNotRun: 'ist noch nicht gelaufen',
      off: 'aus',
      next: (time) => `nächster Lauf ${time}`,
      missed: (count) => `${count} versäumt`,
      overlaps: (count) => plural(count, 'Überschneidung', 'Überschneidungen'),
      running: 'läuft',
      waiting: 'wartet',
    },
  },
};
