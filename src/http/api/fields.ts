import * as v from 'valibot';

/** Building blocks of the schemas of the REST API's bodies. The descriptions end up in /openapi.json. */
export type About = { description: string; examples?: unknown[] };
export const about = <T>(description: string, more: Omit<About, 'description'> = {}): v.MetadataAction<T, About> =>
  v.metadata({ description, ...more });

export const instant = v.pipe(v.string(), v.isoTimestamp(), v.metadata({ format: 'date-time' }));
export const timestamp = (description: string) => v.pipe(instant, about(description));
export const reading = (description: string) => v.pipe(v.nullable(v.number()), about(`${description}; null: unavailable.`));
export const count = (description: string) => v.pipe(v.number(), v.integer(), v.minValue(0), about(description));
export const seconds = (description: string) => v.pipe(v.number(), v.minValue(0), about(description));
export const text = (description: string) => v.pipe(v.string(), about(description));
