import type { RefObject } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { messages } from '../../messages/messages.ts';

/** The wall is dimmed below this illuminance in lux, as in a projector room with the lights off. */
const DARK_LUX = 15;

interface LightSensor extends EventTarget {
  readonly illuminance: number | null;
  start(): void;
  stop(): void;
}

export interface FullScreen {
  readonly isFull: boolean;
  readonly isDimmed: boolean;
  /** Why the screen may go dark; null: it is kept awake. */
  readonly problem: string | null;
  readonly toggleFull: () => void;
  readonly toggleDim: () => void;
}

/** Shows an element in full screen, keeps the screen awake meanwhile, and dims it if a light sensor reports a dark room. */
export function useFullScreen(element: RefObject<HTMLElement | null>): FullScreen {
  const [isFull, setFull] = useState(false);
  const [isDimmed, setDimmed] = useState(false);
  const [problem, setProblem] = useState<string | null>(null);
  useEffect(() => {
    const changed = (): void => setFull(document.fullscreenElement !== null);
    document.addEventListener('fullscreenchange', changed);
    return () => document.removeEventListener('fullscreenchange', changed);
  }, []);
  useEffect(() => {
    if (!isFull) return undefined;
    const endWake = keepAwake(setProblem);
    const endLight = onLight((lux) => setDimmed(lux < DARK_LUX));
    return () => {
      endWake();
      endLight();
      setDimmed(false);
    };
  }, [isFull]);
  return {
    isFull,
    isDimmed,
    problem,
    toggleDim: () => setDimmed(!isDimmed),
    toggleFull: () => void (isFull ? document.exitFullscreen() : element.current?.requestFullscreen?.()),
  };
}

/** Browsers release the lock when the page is hidden, so it is requested again. */
function keepAwake(report: (problem: string | null) => void): () => void {
  let lock: WakeLockSentinel | null = null;
  let isEnded = false;
  const request = async (): Promise<void> => {
    if (document.visibilityState !== 'visible') return;
    try {
      // Missing on pages that are not loaded over HTTPS or from this computer.
      if (!navigator.wakeLock) throw new Error('no wake lock');
      lock = await navigator.wakeLock.request('screen');
      if (isEnded) void lock.release();
      report(null);
    } catch {
      report(messages.wall.mayGoDark);
    }
  };
  const again = (): void => void request();
  document.addEventListener('visibilitychange', again);
  again();
  return () => {
    isEnded = true;
    document.removeEventListener('visibilitychange', again);
    void lock?.release();
  };
}

function onLight(report: (lux: number) => void): () => void {
  const { AmbientLightSensor: Sensor } = globalThis as { AmbientLightSensor?: new () => LightSensor };
  try {
    const sensor = Sensor && new Sensor();
    sensor?.addEventListener('reading', () => report(sensor.illuminance ?? Number.POSITIVE_INFINITY));
    sensor?.start();
    return () => sensor?.stop();
  } catch {
    return () => undefined; // The sensor is forbidden on this page; the button remains.
  }
}
