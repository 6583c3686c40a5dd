/** Why a safe shutdown is asked for. */
export const SHUTDOWN_REASONS = ['OVERTEMP', 'CRITICAL_ALERT', 'EMERGENCY', 'MAINTENANCE', 'POWER_LOW', 'MANUAL', 'USER_REQUEST'] as const;
export type ShutdownReason = (typeof SHUTDOWN_REASONS)[number];

/** A request as it arrives on /safe_shutdown: nothing of it is to be trusted yet. */
export interface ShutdownCall {
  readonly reason: string;
  readonly requested_by: string;
  /** Seconds allowed for the whole procedure; may be NaN or infinite. */
  readonly timeout: number;
}

/** Where a call came from; null: not known (rclnodejs does not tell). */
export interface ShutdownSource {
  readonly address: string | null;
  /** The sender's UDP port. */
  readonly port: number | null;
  /** The user of this machine whose program called, by name. */
  readonly user: string | null;
}

/** Who calls over DDS, as far as the datagrams show it. */
export interface DdsCaller {
  readonly address: string;
  readonly port: number;
  /** Whether the call came from this machine. */
  readonly local: boolean;
  /** The ports of this machine at which the caller's participant receives; null: it receives elsewhere. */
  readonly receivingPorts: readonly number[] | null;
  /** Has the participant show that it receives what is sent to it; resolves with whether it did, within half a second. */
  readonly prove: () => Promise<boolean>;
  /** Notes that the call is handled; false: it was before, and has come again. */
  readonly isNew: () => boolean;
}

/** Who calls. Null: the transport lets nobody call who may not (rclnodejs with SROS2). */
export interface ShutdownCaller {
  readonly dds: DdsCaller | null;
  /** Called by the name that every machine offers, /safe_shutdown; otherwise by the node's own. */
  readonly isShared: boolean;
}

/** The answer on /safe_shutdown. */
export interface ShutdownReply {
  /** Accepted and started. */
  readonly success: boolean;
  readonly message: string;
}

/**
 * Answers a call; never rejects. The answer is due within a second, whatever the procedure takes afterwards. Null: none is sent, because
 * the call was answered before, or because another machine is meant: the caller may not ask this one, and has used the shared name.
 */
export type ShutdownHandler = (call: ShutdownCall, caller: ShutdownCaller) => Promise<ShutdownReply | null>;

/** What the last step does. */
export const SHUTDOWN_ACTIONS = ['poweroff', 'reboot', 'halt', 'dry-run'] as const;
export type ShutdownAction = (typeof SHUTDOWN_ACTIONS)[number];

export const SHUTDOWN_STATES = ['in_progress', 'completed', 'aborted'] as const;
export type ShutdownState = (typeof SHUTDOWN_STATES)[number];
export const SHUTDOWN_STEPS = ['announce', 'hooks', 'stop_units', 'store', 'power'] as const;
export type ShutdownStep = (typeof SHUTDOWN_STEPS)[number];

/** One step of the way of a safe shutdown, as it goes out on /shutdown_status and /events. */
export interface ShutdownProgress {
  /** Sortable unique id of the request; the same from announcement to end. */
  readonly request_id: string;
  readonly state: ShutdownState;
  readonly step: ShutdownStep;
  readonly reason: ShutdownReason;
  readonly requested_by: string;
  /** What the last step will do or did. */
  readonly action: ShutdownAction;
  /** Until the deadline; 0 once it has passed. */
  readonly seconds_left: number;
  /** What happened, for people. */
  readonly message: string;
  readonly timestamp: string;
}
