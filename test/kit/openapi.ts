import * as assert from 'node:assert/strict';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { openApi } from '../../config/sdk/callback/api/openapi.ts';

type Value = { readonly [key: string]: unknown };

interface Operation {
  readonly operationId: string;
  readonly parameters?: readonly { readonly name: string; readonly in: string }[];
  readonly requestBody?: object;
  readonly responses: { readonly [status: string]: { readonly content?: Value } };
}

export interface Documented {
  readonly path: string;
  readonly method: string;
  readonly operation: Operation;
}

/** Every operation of a description, in OpenAPI 3.1. */
export function operationsOf(description: Value): Documented[] {
  const paths = description.paths as { readonly [path: string]: { readonly [method: string]: Operation } };
  return Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ path, method, operation })),
  );
}

// per copy: compiled schemas.
const description = strict(openApi()) as Value;
const operations = operationsOf(description);
const ajv = new Ajv2020({ strict: false, allErrors: true });
ajv.addFormat('date-time', /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
ajv.addSchema(description, 'openapi.json');

/** The operation of a URL path below /api/v1. */
function operationOf(method: string, path: string): Documented | undefined {
  const [own = ''] = path.split('?');
  return operations.find(
    (one) =>
      one.method === method.toLowerCase() &&
      new RegExp(`^${one.path.replaceAll('.', '\\.').replaceAll(/\{\w+\}/g, '[^/]+')}/?$`).test(own),
  );
}

/** Fails if the description does not say that the API answers so. Returns which operation and status it was. */
export function assertDocumented(method: string, path: string, status: number, body: unknown): string | undefined {
  const found = operationOf(method, path);
  // Of another method or an unknown route, for which an error is all there can be.
  const place = found && [...placeOf(found), 'responses', String(status), 'content', 'application/json', 'schema'];
  const pointer = place ?? ['components', 'schemas', 'ApiError'];
  const answered = `${method} ${path} ${status}`;
  assert.ok(!found || found.operation.responses[status], `${answered} is not described`);
  const validate = ajv.getSchema(`openapi.json#/${pointer.map(escaped).join('/')}`);
  assert.ok(validate, `${answered} has no schema`);
  assert.ok(validate(body), `${answered}: ${ajv.errorsText(validate.errors)}\n${JSON.stringify(body)}`);
  return found && `${found.operation.operationId} ${status}`;
}

/** Fails if the data of an event is not as the description has it. */
export function assertEvent(data: unknown): void {
  const validate = ajv.getSchema('openapi.json#/components/schemas/StreamEvent');
  assert.ok(validate?.(data), `${ajv.errorsText(validate?.errors)}\n${JSON.stringify(data)}`);
}

/** The same for the body of a webhook. */
export function assertWebhook(body: unknown): void {
  const validate = ajv.getSchema('openapi.json#/components/schemas/WebhookDelivery');
  assert.ok(validate?.(body), `${ajv.errorsText(validate?.errors)}\n${JSON.stringify(body)}`);
}

/** Every result that is no error, as `assertDocumented` names it. */
export const documentedResults: readonly string[] = operations.flatMap(({ operation: { operationId, responses } }) =>
  Object.keys(responses).flatMap((status) => (status.startsWith('2') ? [`${operationId} ${status}`] : [])),
);

const placeOf = ({ path, method }: Documented) => ['paths', path, method];
const escaped = (part: string) => encodeURIComponent(part.replaceAll('~', '~0').replaceAll('/', '~1'));

/** A copy in which objects have no other properties than those described: what is not described is found. */
function strict(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(strict);
  if (typeof value !== 'object' || value === null) return value;
  const copy = Object.fromEntries(Object.entries(value).map(([key, one]) => [key, strict(one)]));
  return 'properties' in copy ? { additionalProperties: false, ...copy } : copy;
}
