export const openApi = (): object => ({});
