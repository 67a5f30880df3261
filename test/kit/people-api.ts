import type { ApprovalsConfig } from '../../config/define.ts';
import { type GateUnderTest, withGate } from '../suites/gate-client.ts';
import { assertDocumented } from './openapi.ts';

export const SERVER: ApprovalsConfig = {
  roles: { deciders: ['group:finance', 'user:cy'], heads: ['group:heads'] },
  server: { role: 'deciders' },
};

export interface Answer {
  readonly status: number;
  readonly headers: Headers;
  // biome-ignore lint/suspicious/noExplicitAny: whatever the server answered
  readonly body: any;
  /** The operation and the status, as `assertDocumented` names them. */
  readonly result?: string;
}

export interface Api extends GateUnderTest {
  tokenOf(id: string, ...groups: string[]): Promise<string>;
  /** Calls the API, and compares every answer with its description. */
  call(
    method: string,
    path: string,
    more?: { token?: string; body?: unknown; type?: string; headers?: Readonly<Record<string, string>> },
  ): Promise<Answer>;
  /** As `call`, with the response itself, which is not compared with the description. */
  fetch(path: string, init?: RequestInit & { readonly token?: string }): Promise<Response>;
}

/** Runs `body` with the handler of a program, for the people of the role `deciders`. */
export async function withApi(
  body: (api: Api) => Promise<void>,
  approvals: ApprovalsConfig = SERVER,
  setup: Omit<Parameters<typeof withGate>[0], 'approvals'> = {},
): Promise<void> {
  await withGate({ ...setup, approvals }, async (gate) => {
    await body({ ...gate, ...apiOf(gate.svc) });
  });
}

/** Calls the API of a client. */
export function apiOf(svc: GateUnderTest['svc'], stopping?: AbortSignal): Pick<Api, 'tokenOf' | 'call' | 'fetch'> {
  const handler = svc.approvals.handler({ stopping });
  const fetch: Api['fetch'] = (path, { token, ...init } = {}) => {
    const headers = new Headers(init.headers);
    if (token !== undefined) headers.set('authorization', `Bearer ${token}`);
    return handler(new Request(`https://shop.example/svc/api/v1${path}`, { ...init, headers }));
  };
  return {
    fetch,
    tokenOf: async (id, ...groups) => (await svc.people.createToken({ id, groups }, { validForMs: 60_000 })).token,
    async call(method, path, { token, body, type = 'application/json', headers } = {}) {
      const sent = typeof body === 'string' ? body : JSON.stringify(body);
      const response = await fetch(path, {
        method,
        headers: { ...(body !== undefined && { 'content-type': type }), ...headers },
        ...(token !== undefined && { token }),
        ...(body !== undefined && { body: sent }),
      });
      const text = await response.text();
      const isJson = response.headers.get('content-type') === 'application/json';
      const answered = { status: response.status, headers: response.headers, body: isJson ? JSON.parse(text) : text };
      if (!isJson || method === 'HEAD') return answered;
      const result = assertDocumented(method, path, answered.status, answered.body);
      return { ...answered, ...(result !== undefined && { result }) };
    },
  };
}
