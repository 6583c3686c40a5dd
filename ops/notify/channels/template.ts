import Mustache from 'mustache';
import { type Message, type MessageAlert, plainText, subjectLine } from '../message.ts';
import { isOver } from '../plan.ts';

/** The values available to a template: the members of the message, and values derived from them. */
export function valuesOf(message: Message): Readonly<Record<string, unknown>> {
  const { alerts, omitted, open, status } = message;
  const listed = (list: readonly MessageAlert[]) =>
    list.map((alert, index) => ({
      ...alert,
      is_over: isOver(alert.state),
      first: index === 0,
      last: index === list.length - 1,
    }));
  return {
    ...message,
    alerts: listed(alerts),
    open: listed(open),
    count: alerts.length + omitted,
    subject: subjectLine(message),
    text: plainText(message),
    is_critical: status === 'CRITICAL',
    is_error: status === 'ERROR',
    is_warning: status === 'WARNING',
    is_resolved: status === 'RESOLVED',
    is_test: status === 'TEST',
  };
}

/** Returns the escape function for a body of this type. */
function escaperOf(contentType: string): (text: string) => string {
  const type = (contentType.split(';', 1)[0] ?? '').trim().toLowerCase();
  if (type.includes('json')) return (text) => JSON.stringify(text).slice(1, -1);
  if (/\/(.+\+)?(xml|html)$/.test(type)) return (text) => text.replaceAll(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`);
  if (type === 'application/x-www-form-urlencoded') return encodeURIComponent;
  return (text) => text;
}

/** Mustache renders an unknown name as nothing, so a typing error would send empty notifications forever. */
class StrictContext extends Mustache.Context {
  override push(view: unknown): StrictContext {
    return new StrictContext(view, this);
  }

  override lookup(name: string): unknown {
    const value: unknown = name in Object.prototype ? undefined : super.lookup(name);
    if (value === undefined) throw new Error(`there is no placeholder {{${name}}} here`);
    return value;
  }
}

/** Throws for text that is not a Mustache template, and for a name that does not exist. */
export function render(template: string, values: Readonly<Record<string, unknown>>, contentType: string): string {
  const escaped = escaperOf(contentType);
  return new Mustache.Writer().render(template, new StrictContext(values), undefined, {
    escape: (value: unknown) => (typeof value === 'object' ? '' : escaped(String(value))),
  });
}
