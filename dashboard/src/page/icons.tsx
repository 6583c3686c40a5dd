import type { ComponentChildren, VNode } from 'preact';
import type { Severity, Status } from '../types.ts';

/** Each status has its own shape and a text beside it, so that no information depends on colour alone. */
function Icon({ children }: { children: ComponentChildren }): VNode {
  return (
    <svg class="icon" viewBox="0 0 24 24" fill="none" stroke="currentColor" stroke-width="2.4" aria-hidden="true" focusable="false">
      {children}
    </svg>
  );
}

const Tick = (): VNode => (
  <Icon>
    <circle cx="12" cy="12" r="10" />
    <path d="M7.2 12.4l3.2 3.3 6.4-7" />
  </Icon>
);

const Triangle = (): VNode => (
  <Icon>
    <path d="M12 2.8L22.4 21H1.6z" stroke-linejoin="round" />
    <path d="M12 9.4v5.4M12 17v1.6" />
  </Icon>
);

const Octagon = (): VNode => (
  <Icon>
    <path d="M8 2h8l6 6v8l-6 6H8l-6-6V8z" stroke-linejoin="round" />
    <path d="M8.4 8.4l7.2 7.2M15.6 8.4l-7.2 7.2" />
  </Icon>
);

const Question = (): VNode => (
  <Icon>
    <circle cx="12" cy="12" r="10" stroke-dasharray="4 2.3" />
    <path d="M9 9.2a3 3 0 1 1 4.2 2.9c-.8.4-1.2 1-1.2 2V15M12 16.6v1.6" />
  </Icon>
);

const Broken = (): VNode => (
  <Icon>
    <rect x="3" y="3" width="18" height="18" rx="3" />
    <path d="M12 7v6.4M12 15.4V17" />
  </Icon>
);

export const Ring = (): VNode => (
  <Icon>
    <circle cx="12" cy="12" r="10" opacity="0.4" />
  </Icon>
);

export const STATUS_ICONS: Readonly<Record<Status, () => VNode>> = {
  OK: Tick,
  WARNING: Triangle,
  ERROR: Broken,
  CRITICAL: Octagon,
  UNKNOWN: Question,
};

export const SEVERITY_ICONS: Readonly<Record<Severity, () => VNode>> = { WARNING: Triangle, ERROR: Broken, CRITICAL: Octagon };

/** For the navigation. */
export const Grid = (): VNode => (
  <Icon>
    <path d="M4 4h7v7H4zM13 4h7v7h-7zM4 13h7v7H4zM13 13h7v7h-7z" stroke-linejoin="round" />
  </Icon>
);

export const Gauge = (): VNode => (
  <Icon>
    <path d="M3 16a9 9 0 0 1 18 0M12 16l4-6" stroke-linecap="round" />
    <circle cx="12" cy="16" r="1.6" fill="currentColor" />
  </Icon>
);

export const Bell = (): VNode => (
  <Icon>
    <path d="M6 17V11a6 6 0 0 1 12 0v6l2 2H4zM10 21h4" stroke-linejoin="round" />
  </Icon>
);

export const Gear = (): VNode => (
  <Icon>
    <circle cx="12" cy="12" r="3.4" />
    <path d="M12 2.5v3.2M12 18.3v3.2M2.5 12h3.2M18.3 12h3.2M5.3 5.3l2.3 2.3M16.4 16.4l2.3 2.3M18.7 5.3l-2.3 2.3M7.6 16.4l-2.3 2.3" />
  </Icon>
);
