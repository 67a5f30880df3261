/** Whether the two sides cannot agree on TLS: a certificate that is not taken, or a server that has none. */
export function isTlsError(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  const { code } = error as { readonly code?: unknown };
  const named = typeof code === 'string' && /CERT|SELF_SIGNED|UNABLE_TO_|_TLS_|_SSL_|EPROTO/.test(code);
  return named || /certificate|\b(?:ssl|tls)\b/i.test(error.message);
}
