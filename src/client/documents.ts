/** The documents of the REST API and of the scheduler's state file, with their schemas, for programs other than the service. */
export { type OpsDocument, opsDocumentSchema, runSchema } from '../http/api/ops-schema.ts';
export {
  type AggregateDocument,
  aggregateSchema,
  alertListSchema,
  healthStatusSchema,
  type StatusDocument,
  statusDocumentSchema,
} from '../http/api/schema.ts';
