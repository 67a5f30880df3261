import { generateKeyPairSync, sign } from 'node:crypto';

// Just enough of X.509 (RFC 5280) in DER for a browser that ignores who has signed: Node reads certificates, but makes none.

const SEQUENCE = 0x30;
const SET = 0x31;
const INTEGER = 0x02;
const OBJECT_ID = 0x06;
const UTF8 = 0x0c;
const UTC_TIME = 0x17;
const BIT_STRING = 0x03;
const ECDSA_WITH_SHA256 = Buffer.from('2a8648ce3d040302', 'hex');
const COMMON_NAME = Buffer.from('550403', 'hex');
const DAY_MS = 86_400_000;

/** A key and a certificate for `name`, valid from yesterday to tomorrow, for a server with TLS. */
export function selfSigned(name: string): { readonly key: string; readonly cert: string } {
  const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'prime256v1' });
  const algorithm = der(SEQUENCE, der(OBJECT_ID, ECDSA_WITH_SHA256));
  const commonName = der(SEQUENCE, der(OBJECT_ID, COMMON_NAME), der(UTF8, Buffer.from(name)));
  const subject = der(SEQUENCE, der(SET, commonName));
  const validity = der(SEQUENCE, utcTime(Date.now() - DAY_MS), utcTime(Date.now() + DAY_MS));
  const spki = publicKey.export({ type: 'spki', format: 'der' });
  const content = der(SEQUENCE, der(INTEGER, Buffer.of(1)), algorithm, subject, validity, subject, spki);
  const signature = der(BIT_STRING, Buffer.of(0), sign('sha256', content, privateKey));
  const base64 = der(SEQUENCE, content, algorithm, signature).toString('base64');
  return {
    key: privateKey.export({ type: 'pkcs8', format: 'pem' }).toString(),
    cert: `-----BEGIN CERTIFICATE-----\n${base64.replace(/.{64}/g, '$&\n')}\n-----END CERTIFICATE-----\n`,
  };
}

function der(tag: number, ...parts: readonly Buffer[]): Buffer {
  const content = Buffer.concat(parts);
  const { length } = content;
  const prefix =
    length < 0x80 ? [tag, length] : length < 0x100 ? [tag, 0x81, length] : [tag, 0x82, length >> 8, length];
  return Buffer.concat([Buffer.from(prefix.map((byte) => byte & 0xff)), content]);
}

function utcTime(time: number): Buffer {
  const text = new Date(time).toISOString().replace(/^..|[-:T]|\.\d+/g, '');
  return der(UTC_TIME, Buffer.from(text));
}
