import { generateKeyPairSync, type KeyObject } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';

export const CLIENT = { id: 'svc', secret: 'a secret of the client, of thirty-two characters' };
export const CLI_CLIENT = 'svc-cli';

/** The claims of those who can log in, whatever their password. */
const PEOPLE: Readonly<Record<string, object>> = {
  ann: { email: 'ann@acme.example', email_verified: true, groups: ['finance'] },
  bo: { email: 'bo@acme.example', email_verified: true, groups: ['sales'] },
  // With more groups than one cookie can have, and than the cookies of a page can.
  cy: { email: 'cy@acme.example', email_verified: true, groups: ['finance', ...names(150, 20)] },
  di: { email: 'di@acme.example', email_verified: true, groups: ['finance', ...names(150, 90)] },
  eve: { email: 'ann@acme.example', email_verified: false, groups: ['finance'] },
  nobody: { groups: ['finance'] },
};

function names(count: number, length: number): string[] {
  return Array.from({ length: count }, (_, index) => `${index}`.padEnd(length, '-'));
}

export interface RealProvider {
  readonly issuer: string;
  /** What it signs with. */
  readonly key: { readonly kid: string; readonly privateKey: KeyObject; readonly publicKey: KeyObject };
  /** The paths that were requested. */
  readonly requests: string[];
  /** Stops answering, until `resume`. */
  pause(): void;
  resume(): void;
  close(): void;
}

/** Starts a certified provider on a loopback address: its own pages, for login and consent. */
export async function startProvider(redirectUri: string): Promise<RealProvider> {
  const { default: Provider } = await quietly(() => import('oidc-provider'));
  const pair = generateKeyPairSync('rsa', { modulusLength: 2048 });
  const kid = 'the key of the provider';
  let listener: RequestListener = (_request, response) => response.destroy();
  const requests: string[] = [];
  const server = createServer((request, response) => {
    requests.push(request.url ?? '');
    listener(request, response);
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const issuer = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const answer = await quietly(async () =>
    new Provider(issuer, {
      clients: [
        {
          client_id: CLIENT.id,
          client_secret: CLIENT.secret,
          redirect_uris: [redirectUri],
          token_endpoint_auth_method: 'client_secret_post',
        },
        {
          client_id: CLI_CLIENT,
          application_type: 'native',
          token_endpoint_auth_method: 'none',
          redirect_uris: ['http://127.0.0.1/signed-in'],
        },
      ],
      jwks: { keys: [{ ...pair.privateKey.export({ format: 'jwk' }), kid, alg: 'RS256', use: 'sig' }] },
      claims: { openid: ['sub'], email: ['email', 'email_verified'], groups: ['groups'] },
      scopes: ['openid', 'email', 'groups'],
      conformIdTokenClaims: false,
      cookies: { keys: ['for the cookies of the provider'] },
      pkce: { required: () => true },
      features: { devInteractions: { enabled: true } },
      // Without these it prints a notice for each.
      ttl: { AccessToken: 600, AuthorizationCode: 60, Grant: 3_600, IdToken: 3_600, Interaction: 600, Session: 3_600 },
      findAccount: (_context: unknown, accountId: string) => ({
        accountId,
        claims: () => ({ sub: accountId, ...PEOPLE[accountId] }),
      }),
    }).callback(),
  );
  listener = answer;
  return {
    issuer,
    key: { kid, ...pair },
    requests,
    pause: () => {
      listener = (_request, response) => response.destroy();
    },
    resume: () => {
      listener = answer;
    },
    close() {
      server.closeAllConnections();
      server.close();
    },
  };
}

/** A server that answers everything with one object. */
export async function startFakeIssuer() {
  let answer: object = {};
  const server = createServer((_request, response) => {
    response.setHeader('content-type', 'application/json').end(JSON.stringify(answer));
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    issuer: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    answers(next: object) {
      answer = next;
    },
    close() {
      server.closeAllConnections();
      server.close();
    },
  };
}

/** It warns on the console that its pages are for development, and of a version of Node that it is not tested with. */
async function quietly<T>(work: () => Promise<T>): Promise<T> {
  const { info, warn } = console;
  Object.assign(console, { info() {}, warn() {} });
  try {
    return await work();
  } finally {
    Object.assign(console, { info, warn });
  }
}

interface Cookie {
  readonly name: string;
  readonly value: string;
  readonly path: string;
  readonly isLax: boolean;
  readonly until: number;
}

interface Page {
  readonly url: string;
  readonly status: number;
  readonly text: string;
}

/** A browser without scripts: it follows redirects, keeps cookies by their rules, and sends forms. */
export class Browser {
  readonly #cookies = new Map<string, Cookie[]>();
  readonly #handlers: Readonly<Record<string, (request: Request) => Promise<Response>>>;
  page: Page = { url: 'about:blank', status: 0, text: '' };

  /** `handlers`: by origin, who answers instead of the network. */
  constructor(handlers: Readonly<Record<string, (request: Request) => Promise<Response>>> = {}) {
    this.#handlers = handlers;
  }

  async open(url: string): Promise<Page> {
    return this.#load(url, 'GET', undefined);
  }

  /** Follows the link with this text. */
  async follow(text: string): Promise<Page> {
    const [, href = ''] = new RegExp(`<a href="([^"]+)"[^>]*>${text}</a>`).exec(this.page.text) ?? [];
    if (href === '') throw new Error(`no link "${text}" in ${this.page.text}`);
    return this.#load(new URL(unescapeHtml(href), this.page.url).href, 'GET', undefined);
  }

  /** Sends the form that has this field; `fields` are what a person enters. */
  async submit(marker: string, fields: Readonly<Record<string, string>> = {}): Promise<Page> {
    const form = [...this.page.text.matchAll(/<form([^>]*)>([\s\S]*?)<\/form>/g)].find(([text]) =>
      text.includes(marker),
    );
    if (!form) throw new Error(`no form with "${marker}" in ${this.page.text}`);
    const [, attributes = '', content = ''] = form;
    const [, action = this.page.url] = /action="([^"]*)"/.exec(attributes) ?? [];
    const body = new URLSearchParams();
    for (const [, input = ''] of content.matchAll(/<input([^>]*)>/g)) {
      const [, name = ''] = /name="([^"]*)"/.exec(input) ?? [];
      const [, value = ''] = /value="([^"]*)"/.exec(input) ?? [];
      if (name !== '') body.set(name, unescapeHtml(value));
    }
    for (const [name, value] of Object.entries(fields)) body.set(name, value);
    return this.#load(new URL(unescapeHtml(action), this.page.url).href, 'POST', body.toString());
  }

  /** Signs in from the page of a request, at the pages of the provider. */
  async signIn(person: string): Promise<Page> {
    await this.follow('Sign in');
    return this.logIn(person);
  }

  /** What a person does at the provider. */
  async logIn(person: string): Promise<Page> {
    await this.submit('name="login"', { login: person, password: 'x' });
    return this.submit('value="consent"');
  }

  /** The names of the cookies of an origin, and their values. */
  cookiesOf(origin: string): ReadonlyMap<string, string> {
    return new Map(this.#valid(origin).map(({ name, value }) => [name, value]));
  }

  setCookie(origin: string, name: string, value: string): void {
    this.#keep(origin, { name, value, path: '/', isLax: true, until: Number.POSITIVE_INFINITY });
  }

  forget(origin: string): void {
    this.#cookies.delete(origin);
  }

  async #load(start: string, startMethod: string, startBody: string | undefined): Promise<Page> {
    const from = this.page.url === 'about:blank' ? undefined : new URL(this.page.url).origin;
    let isSame = true;
    let [url, method, body] = [start, startMethod, startBody];
    for (let redirects = 0; redirects < 12; redirects++) {
      const { origin, pathname } = new URL(url);
      isSame &&= from === undefined || from === origin;
      const headers = new Headers({
        'sec-fetch-site': from === undefined ? 'none' : isSame ? 'same-origin' : 'cross-site',
      });
      if (body !== undefined) headers.set('content-type', 'application/x-www-form-urlencoded');
      const sent = this.#valid(origin).filter(
        ({ path, isLax }) => pathname.startsWith(path) && (isSame || !isLax || method === 'GET'),
      );
      if (sent.length > 0) headers.set('cookie', sent.map(({ name, value }) => `${name}=${value}`).join('; '));
      const init = { method, headers, redirect: 'manual' as const, ...(body !== undefined && { body }) };
      const handler = this.#handlers[origin];
      const response = await (handler ? handler(new Request(url, init)) : fetch(url, init));
      for (const line of response.headers.getSetCookie()) this.#accept(url, line);
      const location = response.headers.get('location');
      if (location === null) {
        this.page = { url, status: response.status, text: await response.text() };
        return this.page;
      }
      await response.arrayBuffer();
      [url, method, body] = [new URL(location, url).href, 'GET', undefined];
    }
    throw new Error(`too many redirects, at last to ${url}`);
  }

  #accept(url: string, line: string): void {
    const [pair = '', ...rest] = line.split(/; */);
    const { origin, protocol, hostname } = new URL(url);
    // As browsers do, it trusts a loopback address.
    const isTrusted = protocol === 'https:' || hostname === '127.0.0.1';
    const attributes = new Map(rest.map((one) => [one.split('=')[0]?.toLowerCase() ?? '', one.split('=')[1] ?? '']));
    const name = pair.slice(0, pair.indexOf('='));
    const isSecure = attributes.has('secure');
    const isHost = isSecure && attributes.get('path') === '/' && !attributes.has('domain');
    if ((isSecure && !isTrusted) || (name.startsWith('__Host-') && !isHost) || line.length > 4_096) return;
    const seconds = attributes.get('max-age');
    this.#keep(origin, {
      name,
      value: pair.slice(name.length + 1),
      path: attributes.get('path') ?? '/',
      isLax: attributes.get('samesite')?.toLowerCase() === 'lax',
      until: seconds === undefined ? expiryOf(attributes.get('expires')) : Date.now() + Number(seconds) * 1_000,
    });
  }

  #keep(origin: string, cookie: Cookie): void {
    const others = (this.#cookies.get(origin) ?? []).filter(
      ({ name, path }) => name !== cookie.name || path !== cookie.path,
    );
    this.#cookies.set(origin, [...others, cookie]);
  }

  #valid(origin: string): Cookie[] {
    return (this.#cookies.get(origin) ?? []).filter(({ until }) => until > Date.now());
  }
}

function expiryOf(text: string | undefined): number {
  return text === undefined ? Number.POSITIVE_INFINITY : Date.parse(text);
}

function unescapeHtml(text: string): string {
  return text
    .replaceAll('&lt;', '<')
    .replaceAll('&gt;', '>')
    .replaceAll('&quot;', '"')
    .replaceAll('&#39;', "'")
    .replaceAll('&amp;', '&');
}
