const SECRET_PARAMETERS = /([?&](?:password|pass|pwd|token|secret|sslpassword|authtoken)=)[^&#]*/gi;
const LOOPBACK = /^(localhost|127(\.\d{1,3}){3}|\[::1\])$/;
const SCHEME = /^[a-z][a-z0-9+.-]*:\/\//i;

/**
 * A URL that is safe to print: the password and secret parameters are replaced by `***`. The password ends at the last
 * `@`, because an unescaped one may contain any character.
 */
export function withoutPassword(url: string): string {
  const scheme = SCHEME.exec(url)?.[0] ?? '';
  const rest = url.slice(scheme.length);
  const host = rest.lastIndexOf('@');
  const [user, ...password] = rest.slice(0, Math.max(host, 0)).split(':');
  const hidden = host < 0 ? rest : `${user}${password.length > 0 ? ':***' : ''}${rest.slice(host)}`;
  return `${scheme}${hidden}`.replace(SECRET_PARAMETERS, '$1***');
}

/** The port of an http URL that leads to this machine; undefined for any other. */
export function localPort(url: string): number | undefined {
  const { protocol, hostname, port } = new URL(url);
  return protocol === 'http:' && LOOPBACK.test(hostname) && port !== '' ? Number(port) : undefined;
}

/** Why a URL is not safe to send requests and tokens to; undefined if it is. */
export function addressProblem(text: string): string | undefined {
  if (!URL.canParse(text)) return 'is not a URL';
  const { protocol, hostname, username, password } = new URL(text);
  if (username !== '' || password !== '') return 'contains credentials, which would be logged';
  if (protocol === 'https:' || (protocol === 'http:' && LOOPBACK.test(hostname))) return undefined;
  return protocol === 'http:' ? 'is not https: requests would be sent unencrypted' : 'is not an https URL';
}
