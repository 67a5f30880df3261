const SECRET_PARAMETERS = /([?&](?:password|pass|pwd|token|secret|sslpassword|authtoken)=)[^&#]*/gi;
const LOOPBACK = /^(localhost|127(\.\d{1,3}){3}|\[::1\])$/;
const SCHEME = /^[a-z][a-z0-9+.-]*:\/\//i;

/**
 * A URL as it may be printed: whatever stands between the user's name and the host is gone. A password that was not
 * escaped may hold any character, so it ends at the last `@`.
 */
export function withoutPassword(url: string): string {
  const scheme = SCHEME.exec(url)?.[0] ?? '';
  const rest = url.slice(scheme.length);
  const host = rest.lastIndexOf('@');
  const [user, ...password] = rest.slice(0, Math.max(host, 0)).split(':');
  const hidden = host < 0 ? rest : `${user}${password.length > 0 ? ':***' : ''}${rest.slice(host)}`;
  return `${scheme}${hidden}`.replace(SECRET_PARAMETERS, '$1***');
}

/** Why requests and their tokens cannot go to an address; undefined where they can. */
export function addressProblem(text: string): string | undefined {
  if (!URL.canParse(text)) return 'is not a URL';
  const { protocol, hostname, username, password } = new URL(text);
  if (username !== '' || password !== '') return 'has credentials in it: they would be logged with it';
  if (protocol === 'https:' || (protocol === 'http:' && LOOPBACK.test(hostname))) return undefined;
  return protocol === 'http:' ? 'is not https: requests would travel in the clear' : 'is not an https URL';
}
