import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto';

const CIPHER = 'aes-256-gcm';
const IV_BYTES = 12;
const TAG_BYTES = 16;
/** Browsers accept cookies of 4096 bytes, with their name and attributes. */
const MAX_PART = 3_600;
/** Node reads at most 16 KiB of headers. */
const MAX_PARTS = 3;

/** The cookies of the pages at one URL. Scripts cannot read them, and no form of another site sends them. */
export class PageCookies {
  readonly #attributes: string;
  readonly #prefix: string;

  /** `scope` distinguishes applications on one host. */
  constructor(base: string, scope: string) {
    const isSecure = base.startsWith('https:');
    // Browsers accept the prefix below with this path only.
    const path = isSecure ? '/' : new URL(base).pathname;
    this.#attributes = `; Path=${path}; HttpOnly; SameSite=Lax${isSecure ? '; Secure' : ''}`;
    // With this prefix browsers accept the cookie from this host only, and only over TLS.
    this.#prefix = `${isSecure ? '__Host-' : ''}svc-${scope}-`;
  }

  /** The value of a cookie, of all its parts; undefined without it. */
  read(request: Request, name: string): string | undefined {
    const all = (request.headers.get('cookie') ?? '').split(/; */);
    const parts = Array.from({ length: MAX_PARTS }, (_, index) => {
      const start = `${this.#nameOf(name, index)}=`;
      return all.find((one) => one.startsWith(start))?.slice(start.length) ?? '';
    });
    return parts.join('') || undefined;
  }

  /** The headers that set a cookie for some seconds; undefined for a value that browsers would not keep. */
  set(name: string, value: string, seconds: number): string[] | undefined {
    if (value.length > MAX_PART * MAX_PARTS) return undefined;
    return this.#parts(name, (index) => {
      const part = value.slice(index * MAX_PART, (index + 1) * MAX_PART);
      return `${part}; Max-Age=${part === '' ? 0 : Math.max(0, Math.floor(seconds))}`;
    });
  }

  /** The headers that remove a cookie. */
  remove(name: string): string[] {
    return this.#parts(name, () => '; Max-Age=0');
  }

  #parts(name: string, textOf: (index: number) => string): string[] {
    return Array.from(
      { length: MAX_PARTS },
      (_, index) => `${this.#nameOf(name, index)}=${textOf(index)}${this.#attributes}`,
    );
  }

  #nameOf(name: string, index: number): string {
    return `${this.#prefix}${name}${index === 0 ? '' : `.${index}`}`;
  }
}

/** Encrypts and authenticates a text for whom has the key of 32 bytes, for one purpose. */
export function seal(key: Buffer, purpose: string, text: string): string {
  const iv = randomBytes(IV_BYTES);
  const cipher = createCipheriv(CIPHER, key, iv).setAAD(Buffer.from(purpose));
  const sealed = Buffer.concat([cipher.update(text, 'utf8'), cipher.final()]);
  return Buffer.concat([iv, cipher.getAuthTag(), sealed]).toString('base64url');
}

/** The text that was sealed with the key for the purpose; undefined for anything else. */
export function unseal(key: Buffer, purpose: string, sealed: string): string | undefined {
  const bytes = Buffer.from(sealed, 'base64url');
  const [iv, tag] = [bytes.subarray(0, IV_BYTES), bytes.subarray(IV_BYTES, IV_BYTES + TAG_BYTES)];
  if (tag.length < TAG_BYTES) return undefined;
  try {
    const decipher = createDecipheriv(CIPHER, key, iv, { authTagLength: TAG_BYTES });
    decipher.setAAD(Buffer.from(purpose)).setAuthTag(tag);
    const text = decipher.update(bytes.subarray(IV_BYTES + TAG_BYTES));
    return Buffer.concat([text, decipher.final()]).toString();
  } catch {
    return undefined;
  }
}
