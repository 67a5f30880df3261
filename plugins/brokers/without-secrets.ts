/** A message without the user information of a URL, encoded or not. */
export function withoutSecrets(url: string, message: string): string {
  const { username, password } = URL.canParse(url) ? new URL(url) : { username: '', password: '' };
  const secrets = [url, `${username}:${password}`, password, decoded(password)].filter((text) => text.length > 1);
  return secrets.reduce((text, secret) => text.replaceAll(secret, '***'), message);
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
