import * as v from 'valibot';

/** Building blocks of the schemas of the REST API's bodies. The descriptions end up in /openapi.json. */
export const described = <S extends v.GenericSchema>(schema: S, description: string) =>
  v.pipe(schema, v.metadata<v.InferOutput<S>, { description: string }>({ description }));
export const nullable = <S extends v.GenericSchema>(schema: S, description: string) => described(v.nullable(schema), description);

export const instant = v.pipe(v.string(), v.isoTimestamp(), v.metadata({ format: 'date-time' }));
export const timestamp = (description: string) => described(instant, description);
export const reading = (description: string) => nullable(v.number(), `${description}; null: unavailable.`);
export const count = (description: string) => described(v.pipe(v.number(), v.integer(), v.minValue(0)), description);
export const seconds = (description: string) => described(v.pipe(v.number(), v.minValue(0)), description);
export const text = (description: string) => described(v.string(), description);
