/** Reason of a safe shutdown. */
export const SHUTDOWN_REASONS = ['OVERTEMP', 'CRITICAL_ALERT', 'EMERGENCY', 'MAINTENANCE', 'POWER_LOW', 'MANUAL', 'USER_REQUEST'] as const;
export type ShutdownReason = (typeof SHUTDOWN_REASONS)[number];

/** A request as received on /safe_shutdown, not validated. */
export interface ShutdownCall {
  readonly reason: string;
  readonly requested_by: string;
  /** Time limit of the whole procedure in seconds; may be NaN or infinite. */
  readonly timeout: number;
}

/** Origin of a call; null: unknown (rclnodejs does not provide it). */
export interface ShutdownSource {
  readonly address: string | null;
  /** The sender's UDP port. */
  readonly port: number | null;
  /** Name of the local user whose program called. */
  readonly user: string | null;
}

/** The caller on DDS, according to its datagrams. */
export interface DdsCaller {
  readonly address: string;
  readonly port: number;
  /** Whether the call came from this machine. */
  readonly local: boolean;
  /** Local ports at which the caller's participant receives; null: it receives on another machine. */
  readonly receivingPorts: readonly number[] | null;
  /** Challenges the participant to prove that it receives at its address; resolves with the result within half a second. */
  readonly prove: () => Promise<boolean>;
  /** Marks the call as handled; false: it was handled before and is a repetition. */
  readonly isNew: () => boolean;
}

/** The caller. Null: the transport itself admits only authorized callers (rclnodejs with SROS2). */
export interface ShutdownCaller {
  readonly dds: DdsCaller | null;
  /** True: called by the shared name /safe_shutdown; false: by the node's own name. */
  readonly isShared: boolean;
}

/** The response on /safe_shutdown. */
export interface ShutdownReply {
  /** Accepted and started. */
  readonly success: boolean;
  readonly message: string;
}

/**
 * Handles a call; never rejects. The response is due within a second, regardless of the procedure. Null: no response is sent, because the
 * call was answered before, or because it used the shared name and is not allowed here, so that it is meant for another machine.
 */
export type ShutdownHandler = (call: ShutdownCall, caller: ShutdownCaller) => Promise<ShutdownReply | null>;

export const SHUTDOWN_ACTIONS = ['poweroff', 'reboot', 'halt', 'dry-run'] as const;
export type ShutdownAction = (typeof SHUTDOWN_ACTIONS)[number];

export const SHUTDOWN_STATES = ['in_progress', 'completed', 'aborted'] as const;
export type ShutdownState = (typeof SHUTDOWN_STATES)[number];
export const SHUTDOWN_STEPS = ['announce', 'hooks', 'stop_units', 'store', 'power'] as const;
export type ShutdownStep = (typeof SHUTDOWN_STEPS)[number];

/** Progress of a safe shutdown, as published on /shutdown_status and /events. */
export interface ShutdownProgress {
  /** Sortable unique id of the request, constant for the whole procedure. */
  readonly request_id: string;
  readonly state: ShutdownState;
  readonly step: ShutdownStep;
  readonly reason: ShutdownReason;
  readonly requested_by: string;
  /** Action of the last step. */
  readonly action: ShutdownAction;
  /** Seconds until the deadline; 0 once it has passed. */
  readonly seconds_left: number;
  /** Human-readable description. */
  readonly message: string;
  readonly timestamp: string;
}
