import { generateText, isStepCount, streamText, ToolLoopAgent, tool } from 'ai-7';
import { MockLanguageModelV4 } from 'ai-7/test';
import { hostOf } from './ai-sdk.mjs';

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
