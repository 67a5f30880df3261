/**
 * Building blocks for channels outside this package.
 * @module @svc/sdk/channel
 */

export type { Press, Presses, PressResult } from '../../core/approval/presses.ts';
export { type PluginOptions, textOptions, urlOption } from '../shared/text-options.ts';
export { type PostOptions, postJson } from './post.ts';
export { type DecidingClient, type PressEndpoint, parseFormDecision, pressEndpoint } from './press-endpoint.ts';
export {
  decisionText,
  escapeHtml,
  type MarkupEscape,
  type MessageTextOptions,
  noticeText,
  type RequestText,
  type RequestTextOptions,
  requestText,
} from './request-text.ts';
export { isEqualSecret, isRecent, isSignedBy, type SignedContent } from './signature.ts';
