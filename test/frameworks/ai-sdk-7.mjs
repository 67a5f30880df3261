import { generateText, isStepCount, streamText, ToolLoopAgent, tool } from 'ai-7';
import { MockLanguageModelV4 } from 'ai-7/test';
import { hostOf } from './ai-sdk.mjs';
import { PAGE_CALLS, scripted } from './ai-sdk-model.mjs';

export const pageReceived = [];
/** The model of the program of the docs. */
export const model = scripted(MockLanguageModelV4, PAGE_CALLS, pageReceived);

export default hostOf({
  generateText,
  streamText,
  ToolLoopAgent,
  stopAfter: isStepCount,
  timeoutOf: (toolMs) => ({ toolMs }),
  tool,
  Model: MockLanguageModelV4,
  messagesOf: ({ responseMessages }) => responseMessages,
});
