// Compilation of kernel source at run time (libacl_rtc.so). A program is created from text, compiled, and its binary is
// handed to aclrtBinaryLoadFromData. The compiler's text is available as the log whatever the outcome.
#pragma once

#include "acl/acl_base.h"

#define ACL_ERROR_RTC_INVALID_PROG 176000
#define ACL_ERROR_RTC_INVALID_INPUT 176001
#define ACL_ERROR_RTC_INVALID_OPTION 176002
#define ACL_ERROR_RTC_COMPILATION 176003
#define ACL_ERROR_RTC_LINKING 176004
#define ACL_ERROR_RTC_NO_NAME_EXPR_AFTER_COMPILATION 176005
#define ACL_ERROR_RTC_NO_LOWERED_NAMES_BEFORE_COMPILATION 176006
#define ACL_ERROR_RTC_NAME_EXPR_NOT_VALID 176007
#define ACL_ERROR_RTC_PROG_CREATION_FAILURE 276000
#define ACL_ERROR_RTC_OUT_OF_MEMORY 276001
#define ACL_ERROR_RTC_FAILURE 576000

#ifdef __cplusplus
extern "C" {
#endif

typedef void* aclrtcProg;

// `name` is the file name the compiler's messages use for `src`. `headers[i]` is the text of the header that the source
// includes as `includeNames[i]`.
ACL_FUNC_VISIBILITY aclError aclrtcCreateProg(aclrtcProg* prog, const char* src, const char* name, int numHeaders,
                                              const char** headers, const char** includeNames);
// Asks for the kernel `nameExpression` (a template instance, e.g. "ns::add<float>"); only before compiling.
ACL_FUNC_VISIBILITY aclError aclrtcAddNameExpr(aclrtcProg prog, const char* const nameExpression);
ACL_FUNC_VISIBILITY aclError aclrtcCompileProg(aclrtcProg prog, int numOptions, const char** options);
// The name under which aclrtBinaryGetFunction finds `nameExpression`; the text lives as long as the program.
ACL_FUNC_VISIBILITY aclError aclrtcGetLoweredName(aclrtcProg prog, const char* nameExpression,
                                                  const char** loweredName);
ACL_FUNC_VISIBILITY aclError aclrtcGetBinDataSize(aclrtcProg prog, size_t* binDataSizeRet);
ACL_FUNC_VISIBILITY aclError aclrtcGetBinData(aclrtcProg prog, char* binData);
// The size counts the closing NUL.
ACL_FUNC_VISIBILITY aclError aclrtcGetCompileLogSize(aclrtcProg prog, size_t* logSizeRet);
ACL_FUNC_VISIBILITY aclError aclrtcGetCompileLog(aclrtcProg prog, char* log);
ACL_FUNC_VISIBILITY aclError aclrtcDestroyProg(aclrtcProg* prog);

#ifdef __cplusplus
}
#endif
