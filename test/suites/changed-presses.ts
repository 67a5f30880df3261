import type { Presses } from '../../core/approval/presses.ts';
import { isPlainObject, tryParseJson } from '../../core/json.ts';
import type { ChannelMessage } from './channel-under-test.ts';

/** Presses as a service does not send them, or not for a button that the channel has. */

/** Headers and parameters of the query with a signature or a token, and how that looks. */
const PROVES = /sign|token|auth|hmac|secret|proof|hash|digest/i;
const PROOF = /[\w+/-]{32,}={0,2}/;

/** What a careless comparison takes for a proof: its beginning, nothing, and one with a changed character. */
const CARELESS: readonly (readonly [name: string, change: (proof: string) => string])[] = [
  ['the beginning of its signature', (proof) => proof.slice(0, Math.floor(proof.length / 2))],
  ['an empty signature', () => ''],
  ['the first character of its signature changed', (proof) => otherCharacter(proof.charAt(0)) + proof.slice(1)],
  [
    'a character in the middle of its signature changed',
    (proof) => {
      const at = Math.floor(proof.length / 2);
      return proof.slice(0, at) + otherCharacter(proof.charAt(at)) + proof.slice(at + 1);
    },
  ],
];

const otherCharacter = (character: string): string => (character === '1' ? '2' : '1');

/** The press with such proofs in a header or in the query. A proof in the body is for `withoutProof`. */
export async function withCarelessProofs(press: Request): Promise<[string, Request][]> {
  const { method } = press;
  const body = await press.clone().text();
  const requests: [string, Request][] = [];
  for (const [name, change] of CARELESS) {
    for (const [header, value] of press.headers) {
      if (!PROVES.test(header) || !PROOF.test(value)) continue;
      const headers = new Headers(press.headers);
      headers.set(header, value.replace(PROOF, change));
      requests.push([`with ${name} in ${header}`, new Request(press.url, { method, headers, body })]);
    }
    for (const [key, value] of new URL(press.url).searchParams) {
      if (!PROVES.test(key) || !PROOF.test(value)) continue;
      const url = new URL(press.url);
      url.searchParams.set(key, value.replace(PROOF, change));
      requests.push([`with ${name} in ?${key}`, new Request(url, { method, headers: press.headers, body })]);
    }
  }
  return requests;
}

/** The request as somebody else could send it: without query and headers. */
export function bareRequest({ url, method, headers }: Request, body: string): Request {
  const { origin, pathname } = new URL(url);
  const type = headers.get('content-type') ?? 'text/plain';
  return new Request(`${origin}${pathname}`, { method, headers: { 'content-type': type }, body });
}

const UNKNOWN = 'unknown';

/** The press of a button whose value is unknown; undefined if `request` cannot build one. */
export async function unknownPress(
  { raw, displayed }: ChannelMessage,
  request: (message: ChannelMessage, button: 'reject' | 'unknown') => Request | undefined,
): Promise<Request | undefined> {
  const renamed = (text: string) => text.replace(/approve/gi, UNKNOWN);
  const build = (button: 'reject' | 'unknown') => {
    try {
      return request({ raw: renamed(raw), displayed: renamed(displayed) }, button);
    } catch {
      return undefined;
    }
  };
  const press = build(UNKNOWN);
  // A service may send the whole message with a press: the value of the button is one more.
  return press && (await countOf(press)) > (await countOf(build('reject'))) ? press : undefined;
}

async function countOf(press: Request | undefined): Promise<number> {
  if (!press) return 0;
  return `${press.url}\n${await press.clone().text()}`.split(UNKNOWN).length;
}

/** Whether a channel reads the body of a request as the press of a button. */
export function isPress(presses: Presses, body: Uint8Array): boolean {
  try {
    const read = presses.read(body);
    return read !== undefined && 'requestId' in read;
  } catch {
    return false;
  }
}

/** A user whose last character becomes a byte that is not UTF-8. */
export const ODD_USER = 'ada?';

/** Bodies that another reader of JSON, alone or in the field of a form, would read otherwise. */
export function* ambiguousBodies(body: Uint8Array): Generator<readonly [name: string, body: Uint8Array]> {
  const text = Buffer.from(body).toString();
  const [, field = '', value = ''] = /^([\w-]+=)([^&]*)$/.exec(text) ?? [];
  const json = field === '' ? text : decodeURIComponent(value.replaceAll('+', ' '));
  const bodyOf = (bytes: Buffer) =>
    field === '' ? bytes : Buffer.from(field + bytes.toString('hex').replace(/../g, '%$&'));
  const parsed = tryParseJson(json);
  if (!isPlainObject(parsed)) return;
  for (const key of Object.keys(parsed)) {
    yield [`the key "${key}" twice`, bodyOf(Buffer.from(json.replace('{', `{${JSON.stringify(key)}:null,`)))];
  }
  const bytes = Buffer.from(json);
  const at = bytes.indexOf(ODD_USER);
  if (at < 0) return;
  bytes[at + ODD_USER.length - 1] = 0xff;
  yield ['a byte that is not UTF-8', bodyOf(bytes)];
}
