// The MJCF text of the simulated world, compiled into the program.
#ifndef ACTD_SIM_SCENE_XML_H
#define ACTD_SIM_SCENE_XML_H

extern const char scene_xml[];
extern const int scene_xml_len; // bytes, without the closing 0

#endif
